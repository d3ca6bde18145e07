import type { AnyTRPCRouter } from '@trpc/server';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { IdempotencyHeader } from '../database/idempotency.js';
import type { ApiKey } from '../keys/store.js';
import type { RequestContext, RestContext } from '../operations/builder.js';
import type { Stores } from '../operations/resource.js';

/** Everything procedures use that lives as long as the service. */
export interface Dependencies {
  readonly stores: Stores;
  /** The clock, in Unix milliseconds. */
  readonly now: () => number;
}

/** The options that both protocols need to serve the operations. */
export interface ServeOptions extends Dependencies {
  readonly router: AnyTRPCRouter;
}

type CreateContext = (request: FastifyRequest, reply: FastifyReply, rest?: RestContext) => RequestContext;

/**
 * Creates the context of the procedures that a request calls. The stores are on the prototype, because copying them
 * into every context would take 6 µs.
 */
export function createContextFactory({ stores, now }: Dependencies): CreateContext {
  class Context implements RequestContext {
    readonly apiKey: ApiKey;
    readonly idempotency: IdempotencyHeader | undefined;
    readonly idempotencyKey: undefined;
    readonly rest: RestContext | undefined;
    readonly now = now;

    constructor(request: FastifyRequest, reply: FastifyReply, rest?: RestContext) {
      if (request.apiKey === undefined) throw new TypeError('The request was not admitted with a key');
      this.apiKey = request.apiKey;
      this.idempotency = readIdempotencyHeader(request, reply);
      this.rest = rest;
    }
  }
  Object.assign(Context.prototype, stores);
  return (request, reply, rest) => new Context(request, reply, rest);
}

function readIdempotencyHeader(
  { headers, bodyHash }: FastifyRequest,
  reply: FastifyReply,
): IdempotencyHeader | undefined {
  const value = headers['idempotency-key'];
  if (typeof value !== 'string' || bodyHash === undefined) return undefined;
  let isOnlyReplays = true;
  return {
    value,
    bodyHash,
    setReplayed(isReplay) {
      isOnlyReplays &&= isReplay;
      if (isOnlyReplays) reply.header('idempotency-replayed', 'true');
      else reply.removeHeader('idempotency-replayed');
    },
  };
}
