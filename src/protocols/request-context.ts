import type { AnyTRPCRouter } from '@trpc/server';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { IdempotencyHeader } from '../database/idempotency.js';
import type { Rehearsal } from '../errors/rehearsal.js';
import type { ApiKey } from '../keys/store.js';
import type { KeyLimit, RequestContext, RestContext } from '../operations/builder.js';
import { listDeprecated, listOperations } from '../operations/list-operations.js';
import type { Stores } from '../operations/resource.js';

/** What both protocols need to serve the operations. It lives as long as the service. */
export interface ServeOptions {
  readonly router: AnyTRPCRouter;
  readonly stores: Stores;
  /** The clock, in Unix milliseconds. */
  readonly now: () => number;
}

type CreateContext = (request: FastifyRequest, reply: FastifyReply, rest?: RestContext) => RequestContext;

/**
 * Creates the context of the procedures that a request calls. The stores are on the prototype, because copying them
 * into every context would take 6 µs.
 */
export function createContextFactory({ router, stores, now }: ServeOptions): CreateContext {
  const deprecated = listDeprecated(listOperations(router));
  const isDeprecated = (operation: string) => deprecated.has(operation);
  class Context implements RequestContext {
    readonly apiKey: ApiKey;
    readonly limits: readonly KeyLimit[];
    readonly rehearsal: Rehearsal | undefined;
    readonly idempotency: IdempotencyHeader | undefined;
    readonly idempotencyKey: undefined;
    readonly rest: RestContext | undefined;
    readonly now = now;
    readonly isDeprecated = isDeprecated;

    constructor(request: FastifyRequest, reply: FastifyReply, rest?: RestContext) {
      if (request.apiKey === undefined) throw new TypeError('The request was not admitted with a key');
      this.apiKey = request.apiKey;
      this.limits = request.limits;
      this.rehearsal = request.rehearsal;
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
