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
  /** Whether clients with test keys may rehearse errors */
  readonly canRehearse: boolean;
}

/**
 * Whether the calls of a request begin while its limit is decided. The response then waits for the slower of Redis and
 * PostgreSQL, instead of for one after the other. All of this has to hold:
 *
 * - The calls only read, and do not say what is left of the limit: see `mayBegin` of an operation.
 * - This process would not deny the request by itself, for the scope, a ban, a limit or its load.
 * - The client rehearses no error.
 *
 * If Redis denies the request, its calls have cost their statements. Nothing of them is sent, logged or counted.
 */
function mayBegin(
  apiKey: ApiKey,
  { admission: { target }, headers, raw }: FastifyRequest,
  { definition, limiter, limitsPer, bans, overload, canRehearse }: BeginOptions,
): boolean {
  const { cost, scope } = target;
  if (!target.mayBegin) return false;
  if (canRehearse && headers.prefer !== undefined) return false;
  if (scope !== undefined && findScopeError(apiKey, scope) !== undefined) return false;
  if (bans.bannedUntil(apiKey) !== undefined) return false;
  if (limiter.isDenied(toSubject(apiKey, limitsPer, definition), cost)) return false;
  // Last, because a request that has waited too long counts as one that is answered with a 503.
  return overload.check(raw.queuedMs) === undefined;
}

/** Begins the calls of a request, if they need not wait until it is admitted. */
export function beginQuery(
  apiKey: ApiKey,
  request: FastifyRequest,
  reply: FastifyReply,
  options: BeginOptions,
): void {
  const { begin } = request.routeOptions.config;
  if (begin === undefined || !mayBegin(apiKey, request, options)) return;
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
