import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { IdempotencyHeader } from '../database/idempotency.js';
import { ApiError } from '../errors/api-error.js';
import { identify } from '../monitoring/request-log.js';
import { METHODS_WITH_BODY, type RequestContext } from '../operations/builder.js';
import { toApiError } from '../operations/error-mapping.js';
import { listDeprecated, type Operation } from '../operations/list-operations.js';
import type { Stores } from '../operations/resource.js';

/** Routes outside the protocols ignore request bodies. */
export function ignoreBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
}

/** For every media type: admission has checked it. It only collects bytes: an error would close the connection. */
export function readBodyAs(app: FastifyInstance, read: (bytes: Uint8Array) => unknown): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, bytes, done) => done(null, bytes));
  app.addHook('preValidation', (request, _reply, next) => {
    const { body: bytes } = request;
    if (!Buffer.isBuffer(bytes)) return next();
    if (request.headers['idempotency-key'] !== undefined)
      request.bodyHash = createHash('sha256').update(bytes).digest();
    request.body = METHODS_WITH_BODY.has(request.method) ? read(bytes) : undefined;
    next();
  });
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Decodes a JSON body, which is UTF-8 (RFC 8259).
 *
 * @throws ApiError invalid_request when the bytes are not UTF-8
 */
export function decodeBody(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new ApiError('invalid_request', { message: 'The body is not valid UTF-8.' });
  }
}

/** @throws ApiError invalid_request when the text is not JSON */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ApiError('invalid_request', { message: 'The body is not valid JSON.' });
  }
}

/** What all protocols need to create the context of procedures. It lives as long as the service. */
export interface ContextOptions {
  readonly operations: readonly Operation[];
  readonly stores: Stores;
  /** The clock, in Unix milliseconds. */
  readonly now: () => number;
}

/** Returns a function that creates the context of the procedures that a request calls. */
export function createContextFactory({ operations, stores, now }: ContextOptions) {
  // Inherited, because copying the stores into every context would take 6 µs.
  const shared = { ...stores, now, deprecated: listDeprecated(operations), idempotencyKey: undefined };
  return (
    request: FastifyRequest,
    reply: FastifyReply,
    linkNextPage?: RequestContext['linkNextPage'],
    idempotency: IdempotencyHeader | undefined = readIdempotencyHeader(request, reply),
  ): RequestContext => {
    const { apiKey, limits, rehearsal } = request;
    return Object.assign(Object.create(shared), { apiKey, limits, rehearsal, idempotency, linkNextPage });
  };
}

function readIdempotencyHeader(
  { headers, bodyHash }: FastifyRequest,
  reply: FastifyReply,
): IdempotencyHeader | undefined {
  const value = headers['idempotency-key'];
  if (typeof value !== 'string' || bodyHash === undefined) return undefined;
  return createIdempotencyHeader(value, bodyHash, reply);
}

/** @param bodyHash SHA-256 of what a repetition has to repeat */
export function createIdempotencyHeader(
  value: string,
  bodyHash: Uint8Array,
  reply: FastifyReply,
): IdempotencyHeader {
  let isOnlyReplays = true;
  return {
    value,
    bodyHash,
    setReplayed(isReplay) {
      isOnlyReplays &&= isReplay;
      if (isOnlyReplays) reply.header('idempotency-replayed', 'true');
      else reply.removeHeader('idempotency-replayed');
    },
  };
}

/**
 * Sends text that is already JSON. With a serializer, Fastify adds no charset, which application/json does not define.
 * A string is sent in one write with the head of the response; bytes would need a second write.
 */
export function sendJson(reply: FastifyReply, text: string): FastifyReply {
  return reply.type('application/json').serializer(String).send(text);
}

/**
 * Returns what the client learns of an error, and adds its headers. The cause goes to the log, and the client can quote
 * the request id.
 *
 * @param path the procedure, where the route does not tell it
 */
export function reportError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  path?: string,
): ApiError {
  const apiError = toApiError(error);
  request.errorCode ??= apiError.code;
  // A rehearsed error has no cause, nor has one of overload: an overloaded process has no time for a second log line.
  if (apiError.status >= 500 && apiError.cause !== undefined)
    request.log.error({ ...identify(request), err: apiError.cause, path }, apiError.message);
  reply.headers(apiError.headers);
  return apiError;
}
