import type { FastifyInstance, FastifyRequest } from 'fastify';
import { METHODS_WITH_BODY } from '../contract/protocol.js';
import { ApiError } from '../errors/api-error.js';
import { hashRepeated } from './idempotency-header.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** SHA-256 of the body, if it came with an Idempotency-Key */
    bodyHash: Uint8Array | undefined;
  }
}

const NO_BYTES = Buffer.alloc(0);

/** Routes outside the protocols ignore request bodies. */
export function ignoreBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
}

/**
 * Accepts every media type, because admission has checked it. The parser only collects bytes, because an error in it would
 * close the connection.
 */
export function readBodyAs(
  app: FastifyInstance,
  read: (bytes: Uint8Array, request: FastifyRequest) => unknown,
): void {
  app.decorateRequest('bodyHash');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, bytes, done) => done(null, bytes));
  app.addHook('preValidation', (request, _reply, next) => {
    const { apiProtocol, headers, body, admission } = request;
    const bytes = Buffer.isBuffer(body) ? body : NO_BYTES;
    if (apiProtocol !== undefined && headers['idempotency-key'] !== undefined)
      request.bodyHash = hashRepeated(apiProtocol, bytes);
    const isRead =
      METHODS_WITH_BODY.has(request.method) && (bytes.length > 0 || !admission.target.mayLackBody);
    request.body = isRead ? read(bytes, request) : undefined;
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

/**
 * How deep JSON from a client may be nested; RFC 8259 (section 9) allows such a limit. At some thousand levels, code that
 * recurses through a value, such as JSON.stringify, would run out of stack.
 */
const MAX_DEPTH = 64;

/** @throws ApiError invalid_request when a text is nested too deeply, whether or not it is JSON otherwise */
export function checkDepth(text: string): void {
  let depth = 0;
  let isInString = false;
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index];
    if (character === '"') isInString = !isInString;
    else if (isInString) index += Number(character === '\\');
    else if (character === '[' || character === '{') depth += 1;
    else if (character === ']' || character === '}') depth -= 1;
    if (depth > MAX_DEPTH) {
      const message = `JSON must not be nested more than ${MAX_DEPTH} levels deep.`;
      throw new ApiError('invalid_request', { message });
    }
  }
}

/** @throws ApiError invalid_request when the text is not JSON, or is nested too deeply */
export function parseJson(text: string): unknown {
  checkDepth(text);
  try {
    return JSON.parse(text);
  } catch {
    throw new ApiError('invalid_request', { message: 'The body is not valid JSON.' });
  }
}
