import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Deprecation, deprecationHeaders } from '../deprecation.js';
import { ApiError, errorTable } from '../errors.js';
import type { Authenticator } from '../keys/authenticator.js';
import type { ApiKey } from '../keys/store.js';
import type { UsageCounter } from '../keys/usage.js';
import { addressId } from '../limits/address.js';
import type { Decision } from '../limits/decision.js';
import { limitHeaders } from '../limits/headers.js';
import type { Limiter, Subject } from '../limits/limiter.js';
import { type Limits, limitsOf } from '../limits/plans.js';
import { REST_PREFIX } from '../protocol.js';
import { type CorsOptions, registerCors } from './cors.js';
import type { Metrics } from './metrics.js';
import { hasBody } from './operations.js';
import type { LoadWatch } from './overload.js';
import type { Dependencies } from './request-context.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Name of the operation, or of each call of a batch */
    operation?: string | ((request: FastifyRequest) => readonly string[]);
    /** How many requests this one counts as; 1 when left out */
    cost?: (request: FastifyRequest) => number;
    /** That of the operation, or of one of a batch */
    deprecation?: (request: FastifyRequest) => Deprecation | undefined;
    /** What is wrong with the route itself: 404 or 405 */
    routeFault?: (request: FastifyRequest) => ApiError | undefined;
  }
  interface FastifyRequest {
    apiKey: ApiKey | null;
    /** Why the request will be refused, once it is known */
    refusal: unknown;
    /** SHA-256 of the body; only of one that came with an Idempotency-Key */
    bodyHash: Uint8Array | null;
  }
}

export interface GateOptions {
  readonly authenticator: Authenticator;
  readonly limiter: Limiter;
  /** Told of every admitted request of a key */
  readonly usage?: Pick<UsageCounter, 'count'>;
  /** Requests per minute from one address without a valid key */
  readonly anonymousPerMinute: number;
  readonly corsOrigins: CorsOptions['corsOrigins'];
  /** Without a trailing slash */
  readonly publicUrl: () => string;
  readonly dependencies: Pick<Dependencies, 'now'>;
}

interface FaceOptions extends GateOptions, CorsOptions {
  readonly face: 'rest' | 'rpc';
  readonly load: Pick<LoadWatch, 'findFault'>;
  readonly metrics: Pick<Metrics, 'countDecision'>;
}

interface Gate extends FaceOptions {
  readonly anonymous: Limits;
}

/**
 * What stands before both faces, in the order of the contract: the route (404, 405), then the key, then the limit, then
 * whether there is room, and what can be said of the input before it is read. Neither face is entered, and no body is
 * read, before all agree.
 *
 * A refusal is found first and raised last, so that it too carries the headers of the limit and those of CORS.
 */
export async function guardFace(app: FastifyInstance, options: FaceOptions): Promise<void> {
  const gate: Gate = { ...options, anonymous: { perMinute: options.anonymousPerMinute, perDay: null } };
  app.decorateRequest('face', options.face);
  app.decorateRequest('apiKey', null);
  app.decorateRequest('refusal', undefined);
  app.decorateRequest('bodyHash', null);
  app.addHook('onRequest', async (request, reply) => {
    request.refusal = await findRefusal(request, reply, gate);
  });
  await registerCors(app, options);
  app.addHook('onRequest', ({ refusal }, _reply, next) => next(refusal as Error | undefined));
}

async function findRefusal(request: FastifyRequest, reply: FastifyReply, options: Gate): Promise<unknown> {
  const routeFault = findRouteFault(request);
  const { cost, deprecation } = request.routeOptions.config;
  const farewell = deprecation?.(request);
  if (farewell !== undefined) {
    reply.headers(
      deprecationHeaders(farewell, options.publicUrl() + REST_PREFIX, options.dependencies.now()),
    );
  }
  request.apiKey = options.authenticator.recall(request.headers.authorization) ?? null;
  const keyFault = request.apiKey === null ? await authenticate(request, options.authenticator) : undefined;
  const decided = options.limiter.take(
    toSubject(request, options),
    cost?.(request) ?? 1,
    routeFault === undefined,
  );
  if (!(decided instanceof Promise)) await endOfTurn();
  const decision = await decided;
  options.metrics.countDecision(decision.code);
  reply.headers(limitHeaders(decision));
  if (decision.code === null && routeFault === undefined) countUsage(request, options.usage);
  return (
    routeFault ??
    findLimitFault(decision, keyFault) ??
    keyFault ??
    options.load.findFault() ??
    findMediaTypeFault(request)
  );
}

function findRouteFault(request: FastifyRequest): ApiError | undefined {
  const { httpVersion, rawHeaders } = request.raw;
  if (httpVersion === '1.1' && countHosts(rawHeaders) !== 1) {
    return new ApiError('invalid_request', { message: 'A request of HTTP/1.1 must have one Host header.' });
  }
  if (request.is404) return new ApiError('not_found');
  return request.routeOptions.config.routeFault?.(request);
}

/** `headers` keeps the first of several, and `headersDistinct` would sort all headers anew for this. */
function countHosts(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count;
}

/** Puts the valid key on the request, or returns why there is none. */
async function authenticate(request: FastifyRequest, authenticator: Authenticator): Promise<unknown> {
  try {
    request.apiKey = await authenticator.authenticate(request.headers.authorization);
    return undefined;
  } catch (fault) {
    return fault;
  }
}

let turn: Promise<void> | undefined;

/**
 * When all that came in with this turn of the event loop has been looked at. Refusals that are known need no waiting, and
 * sent one by one each would wake the client's side or the network's; a refusal took twice as long so.
 */
function endOfTurn(): Promise<void> {
  turn ??= new Promise((resolve) => {
    setImmediate(() => {
      turn = undefined;
      resolve();
    });
  });
  return turn;
}

/** A valid key is counted for itself, everything else for the address that it comes from. */
function toSubject({ apiKey, ip }: FastifyRequest, { anonymous }: Gate): Subject {
  return apiKey === null ? { kind: 'address', id: addressId(ip), limits: anonymous } : subjectOf(apiKey);
}

/** Made once per look-up of a key, as are the windows that hang on its limits. */
const subjects = new WeakMap<ApiKey, Subject>();

function subjectOf(apiKey: ApiKey): Subject {
  const known = subjects.get(apiKey);
  if (known !== undefined) return known;
  const subject: Subject = { kind: 'key', id: apiKey.id, limits: limitsOf(apiKey) };
  subjects.set(apiKey, subject);
  return subject;
}

/** Each call of a batch counts for its operation. A batch that is too large, which costs 1, runs none. */
function countUsage(request: FastifyRequest, usage: GateOptions['usage']): void {
  const { operation, cost } = request.routeOptions.config;
  if (request.apiKey === null || usage === undefined || operation === undefined) return;
  const names = typeof operation === 'function' ? operation(request) : [operation];
  if (names.length === (cost?.(request) ?? 1)) usage.count(request.apiKey.id, names);
}

/** An address over its limit is told so in place of 401; a key that could not be looked up stays a 503. */
function findLimitFault({ code, retryAfterSeconds }: Decision, keyFault: unknown): ApiError | undefined {
  const isUndecided = keyFault !== undefined && !(keyFault instanceof ApiError);
  if (code === null || isUndecided) return undefined;
  const seconds = retryAfterSeconds ?? 1;
  return new ApiError(code, {
    message: `${errorTable[code].message} Try again in ${seconds} s.`,
    headers: { 'retry-after': String(seconds) },
  });
}

/** Media types are compared without parameters and without regard to case (RFC 9110, section 8.3.1). */
function findMediaTypeFault({ method, headers }: FastifyRequest): ApiError | undefined {
  if (!hasBody(method)) return undefined;
  const mediaType = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  if (mediaType === 'application/json' && headers['content-encoding'] === undefined) return undefined;
  return new ApiError('unsupported_media_type');
}
