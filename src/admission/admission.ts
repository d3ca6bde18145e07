import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Deprecation, deprecationHeaders } from '../contract/deprecation.js';
import type { Limits } from '../contract/plans.js';
import { type Protocol, REST_PREFIX } from '../contract/protocol.js';
import type { Scope } from '../contract/scopes.js';
import { ApiError, type ErrorCode } from '../errors/api-error.js';
import { type Rehearsal, readRehearsal } from '../errors/rehearsal.js';
import { type Authenticator, findScopeError } from '../keys/authenticator.js';
import type { ApiKey } from '../keys/store.js';
import type { UsageCounter } from '../keys/usage.js';
import type { RateLimitResult } from '../limits/rate-limit-result.js';
import type { Metrics } from '../monitoring/metrics.js';
import { listCalls } from '../monitoring/request-log.js';
import type { KeyLimit } from '../operations/builder.js';
import type { OverloadMonitor } from '../server/overload.js';
import { type CorsOptions, registerCors } from './cors.js';
import { checkLimits, type LimitCheckOptions, limitHeaders, readLimits } from './limit-check.js';
import { findHttpError, findMediaTypeError } from './request-checks.js';

/** For how long before its expiry a key's responses announce it. */
const EXPIRY_NOTICE_MS = 30 * 86_400_000;
/** An operation that is not there is not deprecated: a response with one of these codes lacks the headers of that. */
const CODES_OF_MISSING: ReadonlySet<ErrorCode> = new Set(['method_not_allowed', 'operation_removed']);
const DEPRECATION_FIELDS = ['deprecation', 'sunset', 'link'];

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The name of the operation, or of each call of a batch */
    operation?: string | ((request: FastifyRequest) => readonly string[]);
    /** How many requests this one counts as. Default 1 */
    cost?: (request: FastifyRequest) => number;
    /** The scope that the request needs; undefined for a batch, each of whose calls needs its own */
    scope?: (request: FastifyRequest) => Scope | 'any' | undefined;
    /** The deprecation of the operation, or of the first deprecated one in a batch */
    deprecation?: (request: FastifyRequest) => Deprecation | undefined;
    /** Why the route cannot serve the request: 404 or 405 */
    routeError?: (request: FastifyRequest) => ApiError | undefined;
  }
  interface FastifyRequest {
    /** The key that the request was admitted with */
    apiKey: ApiKey | undefined;
    /** What is left of the key's limits after the request */
    limits: readonly KeyLimit[];
    /** The error that each call of the request is to respond with */
    rehearsal: Rehearsal | undefined;
    /** Why the request is not admitted; known before the CORS headers are added, thrown after */
    admissionError: unknown;
    /** SHA-256 of the body, if it came with an Idempotency-Key */
    bodyHash: Uint8Array | undefined;
  }
}

export interface AdmissionOptions extends LimitCheckOptions {
  readonly authenticator: Authenticator;
  /** Counts every admitted request of a key */
  readonly usage: Pick<UsageCounter, 'count'>;
  /** Requests per minute from one address without a valid key */
  readonly anonymousPerMinute: number;
  /** Whether clients may ask for errors in order to see how they cope with them: with test keys only */
  readonly canRehearse: boolean;
  /** Without a trailing slash */
  readonly publicUrl: () => string;
}

interface ProtocolOptions extends AdmissionOptions, CorsOptions {
  readonly protocol: Protocol;
  readonly overload: Pick<OverloadMonitor, 'check'>;
  readonly metrics: Pick<Metrics, 'countDecision'>;
}

/**
 * Admits requests to a protocol. The checks run in the order that the contract specifies: route (404, 405), key, ban
 * and limits, load of the process, scope, media type. No body is read and no handler runs until all of them have passed.
 *
 * The error is determined first and thrown last, so that its response also carries the limit and CORS headers.
 */
export async function registerAdmission(app: FastifyInstance, options: ProtocolOptions): Promise<void> {
  const anonymous: Limits = { perMinute: options.anonymousPerMinute };
  app.decorateRequest('apiProtocol', options.protocol);
  app.decorateRequest('apiKey', undefined);
  app.decorateRequest('limits', undefined as never);
  app.decorateRequest('rehearsal', undefined);
  app.decorateRequest('admissionError', undefined);
  app.decorateRequest('bodyHash', undefined);
  app.addHook('onRequest', async (request, reply) => {
    request.admissionError = await admit(request, reply, options, anonymous);
  });
  await registerCors(app, options);
  app.addHook('onRequest', (request, _reply, next) => next(request.admissionError as Error | undefined));
}

/** Resolves with the reason why the request is not admitted, if any. Sets the headers that every response carries. */
async function admit(
  request: FastifyRequest,
  reply: FastifyReply,
  options: ProtocolOptions,
  anonymous: Limits,
): Promise<unknown> {
  const routeError = findRouteError(request);
  const { config } = request.routeOptions;
  const deprecation = config.deprecation?.(request);
  if (deprecation !== undefined) {
    reply.headers(deprecationHeaders(deprecation, options.publicUrl() + REST_PREFIX, options.now()));
  }
  const { authorization } = request.headers;
  const address = () => ({ kind: 'address', id: request.addressId, limits: anonymous }) as const;
  const cost = config.cost?.(request) ?? 1;
  const { authenticator, limiter } = options;
  const found =
    authenticator.peek(authorization) ??
    (await authenticator
      .authenticate(authorization, () => limiter.isDenied(address(), cost))
      .catch((error: Error) => error));
  const keyError = found instanceof Error ? found : undefined;
  request.apiKey = found instanceof Error ? undefined : found;
  if (request.apiKey !== undefined) announceExpiry(request.apiKey, reply, options.now());
  if (keyError !== undefined && !(keyError instanceof ApiError)) {
    // Whose request this is remains unknown, so it counts against nobody.
    const lastKnown = authenticator.peekStale(authorization);
    if (lastKnown !== undefined) {
      announceExpiry(lastKnown, reply, options.now());
      reply.headers(limitHeaders(await readLimits(lastKnown, cost, options)));
    }
    return routeError ?? keyError;
  }
  const limited = { apiKey: request.apiKey, address, cost, countsTowardsBan: routeError === undefined };
  const { result, error: limitError } = await checkLimits(limited, options);
  reply.headers(limitHeaders(result));
  request.limits = result.windows;
  options.metrics.countDecision(limitError?.code, request.apiKey?.plan);
  if (limitError === undefined && routeError === undefined) countUsage(request, cost, options.usage);
  // A caller over its limit gets a 429 instead of a 401.
  const error = routeError ?? limitError ?? keyError ?? options.overload.check(request.raw.queuedMs);
  return (
    error ??
    findRequestScopeError(request) ??
    findMediaTypeError(request) ??
    (options.canRehearse ? findRehearsedError(request, reply, result) : undefined)
  );
}

/** The error that the client asks for, unless the calls of the request are to respond with it. */
function findRehearsedError(
  request: FastifyRequest,
  reply: FastifyReply,
  { binding }: RateLimitResult,
): ApiError | undefined {
  const { method, headers, apiProtocol, routeOptions } = request;
  const rehearsal = readRehearsal(headers.prefer?.toString(), { method, resetSeconds: binding.resetSeconds });
  if (rehearsal === undefined || rehearsal instanceof ApiError) return rehearsal;
  if (CODES_OF_MISSING.has(rehearsal.code)) for (const name of DEPRECATION_FIELDS) reply.removeHeader(name);
  if (apiProtocol === 'rest' || !rehearsal.isOfCalls)
    return rehearsal.createError(routeOptions.config.scope?.(request));
  request.rehearsal = rehearsal;
  return undefined;
}

/** A key without the scope learns nothing about the input. Procedures check it, too, for the calls of batches. */
function findRequestScopeError(request: FastifyRequest): ApiError | undefined {
  const scope = request.routeOptions.config.scope?.(request);
  if (scope === undefined || request.apiKey === undefined) return undefined;
  return findScopeError(request.apiKey, scope);
}

function findRouteError(request: FastifyRequest): ApiError | undefined {
  const httpError = findHttpError(request);
  if (httpError !== undefined) return httpError;
  if (request.is404) return new ApiError('not_found');
  return request.routeOptions.config.routeError?.(request);
}

/** Each call of a batch counts for its operation. A batch that is too large costs 1 and runs none of its calls. */
function countUsage(request: FastifyRequest, cost: number, usage: AdmissionOptions['usage']): void {
  if (request.apiKey === undefined) return;
  const names = listCalls(request);
  if (names.length === cost) usage.count(request.apiKey.id, names);
}

/** Says when a key that expires soon does. */
function announceExpiry({ expiresAt }: ApiKey, reply: FastifyReply, now: number): void {
  if (expiresAt === null || expiresAt.getTime() - now > EXPIRY_NOTICE_MS) return;
  reply.header('x-api-key-expires', expiresAt.toISOString());
}
