import type { OverloadMonitor } from '@animal-store/http-server';
import type { FastifyReply, FastifyRequest, RouteHandlerMethod } from 'fastify';
import type { ApiKey } from '../keys/api-key.js';
import { findScopeError } from '../keys/authenticator.js';
import { type LimitCheckOptions, toSubject } from './charge.js';

/**
 * Makes the calls of a request, and resolves with a function that sends their outcome. Until that is called, nothing of it is
 * to be seen: no header, no log line, no metric. Rejects with the error to send.
 */
export type Begin = (request: FastifyRequest, reply: FastifyReply) => Promise<() => unknown>;

export interface BeginOptions extends LimitCheckOptions {
  readonly overload: Pick<OverloadMonitor, 'check'>;
}

/**
 * Begins a query while its limit is decided, so that its response waits for the slower of Redis and PostgreSQL instead of both,
 * one after the other. If the request is then denied, the query has cost its statement, and what it found is dropped.
 *
 * It does not begin what this process would refuse by itself, for its scope, its ban, its limit or the load. Nor does it begin
 * for a key that is looked up, what depends on the decision (see `mayBegin`), or what may be rehearsed.
 */
export function beginQuery(
  apiKey: ApiKey,
  request: FastifyRequest,
  reply: FastifyReply,
  { limiter, limitsPer, bans, overload }: BeginOptions,
): void {
  const { begin } = request.routeOptions.config;
  const { cost, scope, mayBegin = false } = request.admission.target;
  if (begin === undefined || !mayBegin || request.headers.prefer !== undefined) return;
  if (scope !== undefined && findScopeError(apiKey, scope) !== undefined) return;
  if (bans.bannedUntil(apiKey) !== undefined || limiter.isDenied(toSubject(apiKey, limitsPer), cost)) return;
  if (overload.check(request.raw.queuedMs) !== undefined) return;
  const begun = begin(request, reply);
  // Of a request that is not admitted, nobody waits for it.
  begun.catch(() => {});
  request.admission.begun = begun;
}

/** The handler of a route with `begin`, for requests whose calls have not begun. */
export const toHandler =
  (begin: Begin): RouteHandlerMethod =>
  async (request, reply) => {
    const send = await begin(request, reply);
    return send();
  };
