import type { FastifyReply, FastifyRequest } from 'fastify';
import type { IdempotencyHeader } from '../idempotency.js';
import type { Stores } from '../resource.js';
import type { RequestContext, RestContext } from '../trpc.js';

/** Everything that procedures use and that lives as long as the service. */
export interface Dependencies {
  readonly stores: Stores;
  /** The clock, in Unix milliseconds. */
  readonly now: () => number;
}

/** The context of the procedures that one request calls. */
export function createRequestContext(
  { stores, now }: Dependencies,
  request: FastifyRequest,
  reply: FastifyReply,
  rest?: RestContext,
): RequestContext {
  const { apiKey } = request;
  if (apiKey === null) throw new TypeError('The request was not admitted with a key');
  const idempotency = readIdempotencyHeader(request, reply);
  return { ...stores, apiKey, now, idempotency, idempotencyKey: undefined, rest };
}

function readIdempotencyHeader(
  { headers, bodyHash }: FastifyRequest,
  reply: FastifyReply,
): IdempotencyHeader | undefined {
  const value = headers['idempotency-key'];
  if (typeof value !== 'string' || bodyHash === null) return undefined;
  let isEveryReplayed = true;
  return {
    value,
    bodyHash,
    setReplayed(isReplay) {
      isEveryReplayed &&= isReplay;
      if (isEveryReplayed) reply.header('idempotency-replayed', 'true');
      else reply.removeHeader('idempotency-replayed');
    },
  };
}
