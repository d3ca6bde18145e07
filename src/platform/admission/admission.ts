import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Protocol } from '../contract/protocol.js';
import { ApiError } from '../errors/api-error.js';
import { type Rehearsal, readRehearsal } from '../errors/rehearsal.js';
import { type Authenticator, findScopeError } from '../keys/authenticator.js';
import type { ApiKey } from '../keys/store.js';
import type { KeyLimit, RequestTarget } from '../operations/builder.js';
import type { OverloadMonitor } from '../server/overload.js';
import { type AnnounceOptions, announceDeprecation, announceExpiry } from './announcements.js';
import { type ChargeOptions, charge, chargeBody, countUsage, toAddress } from './charge.js';
import { type CorsOptions, findOriginError, isPreflight, registerCors } from './cors.js';
import { limitHeaders, toSubject } from './limit-check.js';
import { findHttpError, findMediaTypeError } from './request-checks.js';

/** Of a route that says nothing, such as the one of @fastify/cors, or of none at all. */
const UNKNOWN_TARGET: RequestTarget = { calls: [], cost: 1, error: new ApiError('not_found') };

/** What admission finds of a request. */
interface Admission {
  /** What the request asks for, by its head; by its body once that is read, where only that tells */
  target: RequestTarget;
  /** The key that the request was admitted with */
  apiKey: ApiKey | undefined;
  /** What is left of the key's limits after the request */
  limits: readonly KeyLimit[];
  /** Until when the key is banned, in Unix milliseconds, where that does not keep the request from being admitted */
  bannedUntil: number | undefined;
  /** The error that each call of the request is to respond with */
  rehearsal: Rehearsal | undefined;
  /** Why the request is not admitted; known before the CORS headers are added, thrown after */
  error: unknown;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What a request to this route asks for: every route of the protocols says so */
    readTarget?: (request: FastifyRequest) => RequestTarget;
    /** What it asks for once its body is read; undefined if its head has told that, or the body does not either */
    readBodyTarget?: (request: FastifyRequest) => RequestTarget | undefined;
  }
  interface FastifyRequest {
    /** Whatever runs within the protocols finds it; outside of them there is none */
    admission: Admission;
  }
}

export interface AdmissionOptions extends Omit<ChargeOptions, 'metrics'>, AnnounceOptions {
  readonly authenticator: Authenticator;
  /** Whether clients may ask for errors in order to see how they cope with them: with test keys only */
  readonly canRehearse: boolean;
}

interface ProtocolOptions extends AdmissionOptions, ChargeOptions, CorsOptions {
  readonly protocol: Protocol;
  /** Whether an Origin that CORS does not allow is an error. Default: browsers keep their scripts from the response */
  readonly refusesOrigins?: boolean;
  readonly overload: Pick<OverloadMonitor, 'check'>;
}

/** What a request asks for. */
export function readTarget(request: FastifyRequest): RequestTarget {
  const { admission, routeOptions } = request;
  return admission?.target ?? routeOptions.config.readTarget?.(request) ?? UNKNOWN_TARGET;
}

/**
 * Admits requests to a protocol. The checks run in the order that the contract specifies: route (404, 405), key, ban
 * and limits, load of the process, scope, media type. They read the head only, and nothing else runs before they have passed.
 * Where only the body names the operation, `chargeBody` takes the rest of its cost once the body has been read.
 *
 * The error is determined first and thrown last, so that its response also carries the limit and CORS headers.
 */
export async function registerAdmission(app: FastifyInstance, options: ProtocolOptions): Promise<void> {
  app.decorateRequest('apiProtocol', options.protocol);
  app.decorateRequest('admission');
  app.addHook('onRequest', async (request, reply) => {
    const admission: Admission = {
      target: readTarget(request),
      apiKey: undefined,
      limits: [],
      bannedUntil: undefined,
      rehearsal: undefined,
      error: undefined,
    };
    request.admission = admission;
    admission.error = await findAdmissionError(request, reply, options);
    announceDeprecation(request, reply, options);
  });
  await registerCors(app, options);
  app.addHook('onRequest', ({ admission }, _reply, next) => next(admission.error as Error | undefined));
  app.addHook('onRoute', (route) => {
    const { readBodyTarget } = route.config ?? {};
    if (readBodyTarget === undefined) return;
    route.preHandler = async (request, reply) => {
      const target = readBodyTarget(request);
      if (target !== undefined) await chargeBody(target, request, reply, options);
    };
  });
}

/** Why the request is not admitted, if it is not. Adds the headers that every response carries. */
async function findAdmissionError(
  request: FastifyRequest,
  reply: FastifyReply,
  options: ProtocolOptions,
): Promise<unknown> {
  const { admission, headers } = request;
  const { target } = admission;
  const { cost, scope, isFreeForKey = false } = target;
  if (target.error?.code !== 'not_found' && isPreflight(request, options)) {
    // A browser sends it without the key, and by itself.
    reply.headers(limitHeaders(await options.limiter.read(toAddress(request, options), cost)));
    return target.error;
  }
  const routeError = findRouteError(request, options);
  const found = await authenticate(request, options);
  if ('unavailable' in found) {
    // Whose request this is remains unknown, so it counts against nobody.
    if (found.lastKnown !== undefined) await announceKey(found.lastKnown, cost, reply, options);
    return routeError ?? found.unavailable;
  }
  if ('apiKey' in found) {
    admission.apiKey = found.apiKey;
    announceExpiry(found.apiKey, reply, options.now());
  }
  const limited = { cost, isFreeForKey, countsTowardsBan: routeError === undefined };
  const { result, error: denial } = await charge(limited, request, reply, options);
  if (routeError !== undefined) return routeError;
  countUsage(request, options, denial === undefined ? 'requests' : 'denied');
  // A caller over its limit gets a 429 instead of a 401.
  if (denial !== undefined) return denial;
  if ('rejected' in found) return found.rejected;
  const overload = options.overload.check(request.raw.queuedMs);
  if (overload !== undefined) return overload;
  // A key without the scope learns nothing about the input. Procedures check it, too, for the calls of batches.
  const scopeError = scope && findScopeError(found.apiKey, scope);
  if (scopeError !== undefined) return scopeError;
  const mediaTypeError = findMediaTypeError(request);
  if (mediaTypeError !== undefined) return mediaTypeError;
  if (!options.canRehearse || headers.prefer === undefined) return undefined;
  return rehearse(request, result.binding.resetSeconds);
}

/** Why nothing serves the request, whoever sent it. */
function findRouteError(request: FastifyRequest, options: ProtocolOptions): ApiError | undefined {
  const originError = options.refusesOrigins ? findOriginError(request, options) : undefined;
  return findHttpError(request) ?? request.admission.target.error ?? originError;
}

/** From the cache without waiting, if that tells. */
function authenticate(request: FastifyRequest, options: ProtocolOptions) {
  const { authenticator, limiter } = options;
  const { headers, admission } = request;
  const isOverLimit = () => limiter.isDenied(toAddress(request, options), admission.target.cost);
  const { authorization } = headers;
  return authenticator.peek(authorization) ?? authenticator.authenticate(authorization, isOverLimit);
}

/** The headers of a key against which the request does not count. */
async function announceKey(
  apiKey: ApiKey,
  cost: number,
  reply: FastifyReply,
  { limiter, now }: ProtocolOptions,
): Promise<void> {
  announceExpiry(apiKey, reply, now());
  reply.headers(limitHeaders(await limiter.read(toSubject(apiKey), cost)));
}

/** The error that the client asks for, unless the calls of the request are to respond with it. */
function rehearse(
  { admission, apiProtocol: protocol, headers }: FastifyRequest,
  resetSeconds: number,
): ApiError | undefined {
  const { scope, listAllowed } = admission.target;
  const allow = listAllowed?.().join(', ');
  const rehearsal = readRehearsal(String(headers.prefer), { allow, resetSeconds, protocol });
  if (rehearsal === undefined || rehearsal instanceof ApiError) return rehearsal;
  if (!rehearsal.isOfCalls) return rehearsal.createError(scope);
  admission.rehearsal = rehearsal;
  return undefined;
}
