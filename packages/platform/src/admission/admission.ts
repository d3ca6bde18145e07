import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Protocol } from '../contract/protocol.js';
import { ApiError, overloaded } from '../errors/api-error.js';
import type { ErrorTable } from '../errors/error-table.js';
import { type Rehearsal, readRehearsal } from '../errors/rehearsal.js';
import type { ApiKey } from '../keys/api-key.js';
import { type Authenticator, findScopeError } from '../keys/authenticator.js';
import type { KeyLimit, RequestTarget } from '../operations/builder.js';
import { type AnnounceOptions, announceDeprecation, announceExpiry, limitHeaders } from './announcements.js';
import { type Begin, type BeginOptions, beginQuery } from './begin.js';
import { type ChargeOptions, charge, chargeRest, countUsage, toAddress, toSubject } from './charge.js';
import { type CorsOptions, findOriginError, isPreflight, registerCors } from './cors.js';
import { findHttpError, findMediaTypeError } from './request-checks.js';

/** For a route without `readTarget`, such as that of @fastify/cors, and for a path without a route. */
const UNKNOWN_TARGET: RequestTarget = { calls: [], cost: 1, error: new ApiError('not_found') };

/** What admission finds about a request. */
interface Admission {
  /** What the request asks for, by its headers; if only the body says it, known once the body is read */
  target: RequestTarget;
  /** The key that the request was admitted with */
  apiKey: ApiKey | undefined;
  /** What is left of the key's limits after the request; undefined until that is decided */
  limits: readonly KeyLimit[] | undefined;
  /** Until when the key is banned, in Unix milliseconds; defined only for a request that is admitted all the same */
  bannedUntil: number | undefined;
  /** The error that each call of the request is to respond with */
  rehearsal: Rehearsal | undefined;
  /** The calls of the request, if they have begun before it was admitted */
  begun: ReturnType<Begin> | undefined;
  /** Why the request is not admitted; known before the CORS headers are added, thrown after */
  error: unknown;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What a request to this route asks for; every route of the protocols has it */
    readTarget?: (request: FastifyRequest) => RequestTarget;
    /** Makes the calls of a request whose target says `mayBegin` */
    begin?: Begin;
    /** What the body asks for; undefined if the headers have already said so, or the body names no operation */
    readBodyTarget?: (request: FastifyRequest) => RequestTarget | undefined;
  }
  interface FastifyRequest {
    /** Set on every request of the protocols, and on no other */
    admission: Admission;
  }
}

/** What decides about a request, whatever its protocol. */
export interface AdmissionParts extends ChargeOptions, AnnounceOptions, BeginOptions {
  readonly authenticator: Authenticator;
  /** The errors of the service */
  readonly errors: ErrorTable;
}

export interface ProtocolOptions extends AdmissionParts, CorsOptions {
  readonly protocol: Protocol;
  /** Whether an Origin that CORS does not allow is an error. Default: false, and browsers withhold the response from scripts */
  readonly refusesOrigins?: boolean;
}

/** What a request asks for. */
export function readTarget(request: FastifyRequest): RequestTarget {
  const { admission, routeOptions } = request;
  return admission?.target ?? routeOptions.config.readTarget?.(request) ?? UNKNOWN_TARGET;
}

/**
 * Admits requests to a protocol. The checks run in a fixed order: route (404, 405), key, ban and limits, load of the
 * process, scope, media type. They read only the request line and the headers, and run before anything else. Where only
 * the body names the operation, `chargeRest` takes the rest of its cost once the body has been read.
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
      limits: undefined,
      bannedUntil: undefined,
      rehearsal: undefined,
      begun: undefined,
      error: undefined,
    };
    request.admission = admission;
    admission.error = await findAdmissionError(request, reply, options);
    announceDeprecation(request, reply, options);
  });
  await registerCors(app, options);
  app.addHook('onRequest', ({ admission }, _reply, next) => {
    if (admission.error !== undefined || admission.begun === undefined)
      return next(admission.error as Error | undefined);
    // A response from a hook, so that neither a body is read nor the calls are made again.
    admission.begun.then((send) => send()).catch(next);
  });
  app.addHook('onRoute', (route) => {
    const { readBodyTarget } = route.config ?? {};
    if (readBodyTarget === undefined) return;
    route.preHandler = async (request, reply) => {
      const target = readBodyTarget(request);
      if (target === undefined) return;
      request.admission.target = target;
      const check = await chargeRest(request, options);
      if (check !== undefined) reply.headers(limitHeaders(check.result));
      announceDeprecation(request, reply, options);
      if (check?.error !== undefined) throw check.error;
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
  const { cost, scope, freeForKey } = target;
  if (target.error?.code !== 'not_found' && isPreflight(request, options)) {
    // A browser sends a preflight by itself, without the key.
    reply.headers(limitHeaders(await options.limiter.read(toAddress(request, options), cost)));
    return target.error;
  }
  const routeError = findRouteError(request, options);
  const found = await authenticate(request, options);
  if ('unavailable' in found) {
    // The key cannot be looked up, so the request counts against nobody.
    if (found.lastKnown !== undefined) await announceKey(found.lastKnown, cost, reply, options);
    return routeError ?? found.unavailable;
  }
  if ('apiKey' in found) {
    admission.apiKey = found.apiKey;
    announceExpiry(found.apiKey, reply, options.now());
  }
  const limited = { cost, freeForKey, countsTowardsBan: routeError === undefined };
  const decision = charge(limited, request, options);
  // After the command to Redis, so that this does not wait for what a query takes to begin.
  if ('apiKey' in found && routeError === undefined) beginQuery(found.apiKey, request, reply, options);
  const { result, error: denial } = await decision;
  reply.headers(limitHeaders(result));
  if (routeError !== undefined) return routeError;
  countUsage(request, options, denial === undefined ? 'requests' : 'denied');
  // A caller over its limit gets a 429 instead of a 401.
  if (denial !== undefined) return denial;
  if ('rejected' in found) return found.rejected;
  const retrySeconds = options.overload.check(request.raw.queuedMs);
  if (retrySeconds !== undefined) return overloaded(retrySeconds);
  // A key without the scope learns nothing about the input. Procedures check the scope, too, for calls of batches.
  const scopeError = scope && findScopeError(found.apiKey, scope);
  if (scopeError !== undefined) return scopeError;
  const mediaTypeError = findMediaTypeError(request);
  if (mediaTypeError !== undefined) return mediaTypeError;
  if (!options.canRehearse || headers.prefer === undefined) return undefined;
  return rehearse(request, result.binding.resetSeconds, options.errors);
}

/** The 404 or 405 of a request that no operation serves, whatever its key. */
function findRouteError(request: FastifyRequest, options: ProtocolOptions): ApiError | undefined {
  const originError = options.refusesOrigins ? findOriginError(request, options) : undefined;
  return findHttpError(request) ?? request.admission.target.error ?? originError;
}

/** Does not wait if the key is in the cache. */
function authenticate(request: FastifyRequest, options: ProtocolOptions) {
  const { authenticator, limiter } = options;
  const { headers, admission } = request;
  const isOverLimit = () => limiter.isDenied(toAddress(request, options), admission.target.cost);
  const { authorization } = headers;
  return authenticator.peek(authorization) ?? authenticator.authenticate(authorization, isOverLimit);
}

/** Adds the headers of a key against which the request does not count. */
async function announceKey(
  apiKey: ApiKey,
  cost: number,
  reply: FastifyReply,
  { definition, limiter, limitsPer, now }: ProtocolOptions,
): Promise<void> {
  announceExpiry(apiKey, reply, now());
  reply.headers(limitHeaders(await limiter.read(toSubject(apiKey, limitsPer, definition), cost)));
}

/** The error that the client asks for; undefined if each call of the request responds with it instead. */
function rehearse(
  { admission, apiProtocol: protocol, headers }: FastifyRequest,
  resetSeconds: number,
  errors: ErrorTable,
): ApiError | undefined {
  const { scope, listAllowed } = admission.target;
  const allow = listAllowed?.().join(', ');
  const rehearsal = readRehearsal(String(headers.prefer), { errors, allow, resetSeconds, protocol });
  if (rehearsal === undefined || rehearsal instanceof ApiError) return rehearsal;
  if (!rehearsal.isOfCalls) return rehearsal.createError(scope);
  admission.rehearsal = rehearsal;
  return undefined;
}
