import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Limits, Plan } from '#store/plans.js';
import type { Protocol } from '../contract/protocol.js';
import { ApiError } from '../errors/api-error.js';
import { type Rehearsal, readRehearsal } from '../errors/rehearsal.js';
import { type Authenticator, findScopeError } from '../keys/authenticator.js';
import type { ApiKey } from '../keys/store.js';
import type { Subject } from '../limits/limiter.js';
import type { RateLimitResult } from '../limits/rate-limit-result.js';
import type { Metrics } from '../monitoring/metrics.js';
import type { KeyLimit, RequestTarget } from '../operations/builder.js';
import type { OverloadMonitor } from '../server/overload.js';
import type { UsageCounter } from '../usage/counter.js';
import { announceDeprecation, announceExpiry } from './announcements.js';
import { type CorsOptions, findOriginError, registerCors } from './cors.js';
import {
  checkLimits,
  type LimitCheck,
  type LimitCheckOptions,
  limitHeaders,
  toSubject,
} from './limit-check.js';
import { findHttpError, findMediaTypeError } from './request-checks.js';

/** Of a route that says nothing, such as the one of @fastify/cors, or of none at all. */
const UNKNOWN_TARGET: RequestTarget = { calls: [], cost: 1, error: new ApiError('not_found') };

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What a request to this route asks for: every route of the protocols says so */
    readTarget?: (request: FastifyRequest) => RequestTarget;
    /** What it asks for once its body is read; undefined if its head has told that, or the body does not either */
    readBodyTarget?: (request: FastifyRequest) => RequestTarget | undefined;
  }
  interface FastifyRequest {
    /** Read from the route and the URL when it is first needed: see readTarget */
    target?: RequestTarget;
    /** The key that the request was admitted with */
    apiKey: ApiKey | undefined;
    /** What is left of the key's limits after the request */
    limits: readonly KeyLimit[];
    /** Until when the key is banned, in Unix milliseconds, where that does not keep the request from being admitted */
    bannedUntil: number | undefined;
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
  /** Counts every request of a key, admitted or denied */
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
  /** Whether an Origin that CORS does not allow is an error. Default: browsers keep their scripts from the response */
  readonly refusesOrigins?: boolean;
  readonly overload: Pick<OverloadMonitor, 'check'>;
  readonly metrics: Pick<Metrics, 'countDecision'>;
}

/** What a request asks for. */
export function readTarget(request: FastifyRequest): RequestTarget {
  request.target ??= request.routeOptions.config.readTarget?.(request) ?? UNKNOWN_TARGET;
  return request.target;
}

/**
 * Admits requests to a protocol. The checks run in the order that the contract specifies: route (404, 405), key, ban
 * and limits, load of the process, scope, media type. No body is read and no handler runs until all of them have passed.
 *
 * The error is determined first and thrown last, so that its response also carries the limit and CORS headers.
 */
export async function registerAdmission(app: FastifyInstance, options: ProtocolOptions): Promise<void> {
  const { protocol } = options;
  const anonymous: Limits = { perMinute: options.anonymousPerMinute };
  app.decorateRequest('apiProtocol', protocol);
  const parts = ['target', 'apiKey', 'limits', 'bannedUntil', 'rehearsal', 'admissionError', 'bodyHash'];
  for (const name of parts) app.decorateRequest(name, undefined);
  app.addHook('onRequest', async (request, reply) => {
    request.admissionError = await findAdmissionError(request, reply, options, anonymous);
    announceDeprecation(readTarget(request), request, reply, options);
  });
  await registerCors(app, options);
  app.addHook('onRequest', (request, _reply, next) => next(request.admissionError as Error | undefined));
  // Where only the body tells which operation a request calls, the rest of what concerns it is done once that is read.
  app.addHook('onRoute', (route) => {
    const { readBodyTarget } = route.config ?? {};
    if (readBodyTarget === undefined) return;
    route.preHandler = async (request, reply) => {
      const target = readBodyTarget(request);
      if (target === undefined) return;
      request.target = target;
      const error = await chargeRest(target, request, reply, options, anonymous);
      countUsage(request, options, error === undefined ? 'requests' : 'denied');
      announceDeprecation(target, request, reply, options);
      if (error !== undefined) throw error;
    };
  });
}

/** Counts what a call costs beyond the one request that its head counted as: that one stays counted if this is denied. */
async function chargeRest(
  { cost }: RequestTarget,
  request: FastifyRequest,
  reply: FastifyReply,
  options: ProtocolOptions,
  anonymous: Limits,
): Promise<ApiError | undefined> {
  if (cost <= 1) return undefined;
  const { apiKey } = request;
  const address = () => toAddress(request, anonymous);
  const limited = { apiKey, address, cost: cost - 1, isFreeForKey: false, countsTowardsBan: true };
  return applyDecision(await checkLimits(limited, options), apiKey?.plan, request, reply, options);
}

/** Each call of a batch counts for its operation. A batch that is too large runs none. */
function countUsage(
  request: FastifyRequest,
  { usage }: AdmissionOptions,
  outcome: 'requests' | 'denied' = 'requests',
): void {
  const { apiKey } = request;
  const { calls, cost } = readTarget(request);
  if (apiKey !== undefined && calls.length <= cost) usage.count(apiKey.id, calls, outcome);
}

/** Why the request is not admitted, if it is not. Adds the headers that every response carries. */
async function findAdmissionError(
  request: FastifyRequest,
  reply: FastifyReply,
  options: ProtocolOptions,
  anonymous: Limits,
): Promise<unknown> {
  const { authenticator, limiter, now } = options;
  const { cost, scope, isFreeForKey = false, error: targetError } = readTarget(request);
  const originError = options.refusesOrigins ? findOriginError(request, options) : undefined;
  const routeError = findHttpError(request) ?? targetError ?? originError;
  const { authorization, prefer } = request.headers;
  const address = () => toAddress(request, anonymous);
  const found =
    authenticator.peek(authorization) ??
    (await authenticator.authenticate(authorization, () => limiter.isDenied(address(), cost)));
  if ('unavailable' in found) {
    // Whose request this is remains unknown, so it counts against nobody.
    const { unavailable, lastKnown } = found;
    if (lastKnown !== undefined) {
      announceExpiry(lastKnown, reply, now());
      reply.headers(limitHeaders(await limiter.read(toSubject(lastKnown), cost)));
    }
    return routeError ?? unavailable;
  }
  const apiKey = 'apiKey' in found ? found.apiKey : undefined;
  const keyError = 'rejected' in found ? found.rejected : undefined;
  request.apiKey = apiKey;
  if (apiKey !== undefined) announceExpiry(apiKey, reply, now());
  const limited = { apiKey, address, cost, isFreeForKey, countsTowardsBan: routeError === undefined };
  const decision = await checkLimits(limited, options);
  const plan = isFreeForKey ? undefined : apiKey?.plan;
  const limitError = applyDecision(decision, plan, request, reply, options);
  // A caller over its limit gets a 429 instead of a 401.
  const error = routeError ?? limitError ?? keyError;
  if (apiKey !== undefined && routeError === undefined)
    countUsage(request, options, limitError === undefined ? 'requests' : 'denied');
  if (error !== undefined || apiKey === undefined) return error;
  return (
    options.overload.check(request.raw.queuedMs) ??
    // A key without the scope learns nothing about the input. Procedures check it, too, for the calls of batches.
    (scope && findScopeError(apiKey, scope)) ??
    findMediaTypeError(request) ??
    (options.canRehearse && prefer !== undefined
      ? rehearse(String(prefer), request, decision.result)
      : undefined)
  );
}

function toAddress({ addressId: id }: FastifyRequest, limits: Limits): Subject {
  return { kind: 'address', id, limits };
}

/** Hands a decision to the client, the operation and the metrics. Returns why the request is denied, if it is. */
function applyDecision(
  { result, bannedUntil, error }: LimitCheck,
  plan: Plan | undefined,
  request: FastifyRequest,
  reply: FastifyReply,
  { metrics }: ProtocolOptions,
): ApiError | undefined {
  reply.headers(limitHeaders(result));
  request.limits = result.windows;
  request.bannedUntil = bannedUntil;
  metrics.countDecision(error?.code, plan);
  return error;
}

/** The error that the client asks for, unless the calls of the request are to respond with it. */
function rehearse(
  prefer: string,
  request: FastifyRequest,
  { binding }: RateLimitResult,
): ApiError | undefined {
  const { scope, listAllowed } = readTarget(request);
  const allow = listAllowed?.().join(', ');
  const rehearsal = readRehearsal(prefer, { allow, resetSeconds: binding.resetSeconds });
  if (rehearsal === undefined || rehearsal instanceof ApiError) return rehearsal;
  if (!rehearsal.isOfCalls) return rehearsal.createError(scope);
  request.rehearsal = rehearsal;
  return undefined;
}
