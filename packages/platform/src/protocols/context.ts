import type { FastifyReply, FastifyRequest } from 'fastify';
import { listDeprecated } from '../contract/deprecation.js';
import type { IdempotencyHeader, RequestContext } from '../operations/builder.js';
import { rejectOnce } from '../operations/idempotency-key.js';
import type { Operation } from '../operations/list-operations.js';
import type { Stores } from '../operations/resource.js';
import { readIdempotencyHeader } from './idempotency-header.js';

/** Creates the context of the procedures that a request calls. */
export type CreateContext = ReturnType<typeof createContextFactory>;

/** What every context has, for as long as the service lives. */
export interface ContextOptions {
  readonly operations: readonly Operation[];
  readonly stores: Stores;
  /** Revokes a key. This process rejects the key once the promise has resolved. */
  readonly revokeKey: RequestContext['revokeKey'];
  readonly limitsPer: RequestContext['limitsPer'];
  /** The clock, in Unix milliseconds. */
  readonly now: () => number;
}

export function createContextFactory({ operations, stores, revokeKey, limitsPer, now }: ContextOptions) {
  // Contexts inherit the stores, because copying them into each would take 6 µs.
  const deprecated = listDeprecated(operations);
  const shared = { ...stores, now, revokeKey, limitsPer, deprecated, once: rejectOnce };
  const undecided = Object.create(shared, { limits: { get: rejectLimits } });
  return (
    request: FastifyRequest,
    reply: FastifyReply,
    linkNextPage?: RequestContext['linkNextPage'],
    // Hardly any request has the header.
    idempotency: IdempotencyHeader | undefined = request.bodyHash &&
      readIdempotencyHeader(request, request.bodyHash, reply),
  ): RequestContext => {
    const { apiKey, limits, bannedUntil, rehearsal } = request.admission;
    const own = { apiKey, bannedUntil, rehearsal, idempotency, linkNextPage };
    return limits === undefined
      ? Object.assign(Object.create(undecided), own)
      : Object.assign(Object.create(shared), own, { limits });
  };
}

/** @throws TypeError, because a query that runs before its limit is decided must not take it for an empty one */
function rejectLimits(): never {
  throw new TypeError(
    'ctx.limits is not known to a query that begins before they are decided: declare waitsForLimit: true in its .meta()',
  );
}
