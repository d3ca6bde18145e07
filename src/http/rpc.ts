import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Deprecation } from '../deprecation.js';
import { ApiError } from '../errors.js';
import { MAX_BATCH_SIZE } from '../protocol.js';
import type { AppRouter } from '../router.js';
import type { OperationMeta, Service } from '../trpc.js';
import { describeCall } from './request-context.js';
import { methodNotAllowed } from './rest.js';
import { readCall } from './rpc-call.js';
import { answerPlainCalls, type Procedures, readPlainCalls } from './rpc-plain.js';
import { answerByTrpc } from './rpc-resolve.js';

export interface RpcOptions {
  readonly router: AppRouter;
  readonly service: Service;
}

/** Serves the router to tRPC clients: Fastify finds the route and reads the body, tRPC does the rest. */
export function registerRpc(app: FastifyInstance, { router, service }: RpcOptions): void {
  const procedures: Procedures = router._def.procedures;
  app.decorateRequest('rpcCall', null);
  app.route({
    method: [...app.supportedMethods],
    url: '/:path',
    config: {
      operation: (request) => readCall(request).names,
      cost: (request) => countCalls(readCall(request).names),
      deprecation: (request) => findDeprecation(procedures, readCall(request).names),
      routeError: (request) => findRouteFault(procedures, request, readCall(request).names),
    },
    async handler(request, reply) {
      const call = readCall(request);
      checkBatchSize(call.names);
      const context = { ...service, ...describeCall(request, reply) };
      const plain = readPlainCalls(procedures, request, call);
      return plain === undefined
        ? answerByTrpc(router, context, request, reply)
        : answerPlainCalls(plain, call.isBatch, context, request, reply);
    },
  });
}

function checkBatchSize(names: readonly string[]): void {
  if (names.length > MAX_BATCH_SIZE) {
    throw new ApiError(
      'invalid_request',
      `A batch holds at most ${MAX_BATCH_SIZE} calls; this one has ${names.length}.`,
    );
  }
}

/** A batch costs its calls; one that is too large runs none and counts as one request. */
function countCalls(names: readonly string[]): number {
  return names.length > MAX_BATCH_SIZE ? 1 : names.length;
}

function findDeprecation(procedures: Procedures, names: readonly string[]): Deprecation | undefined {
  for (const name of names) {
    const procedure = Object.hasOwn(procedures, name) ? procedures[name] : undefined;
    const { deprecation } = (procedure?._def.meta ?? {}) as Partial<OperationMeta>;
    if (deprecation !== undefined) return deprecation;
  }
  return undefined;
}

/** 404 when no procedure of the call exists, 405 when each that does wants the other method. */
function findRouteFault(procedures: Procedures, { method }: FastifyRequest, names: readonly string[]) {
  const allowed = new Set<string>();
  for (const name of names) {
    if (!Object.hasOwn(procedures, name)) continue;
    const methods = procedures[name]?._def.type === 'mutation' ? ['POST'] : ['GET', 'HEAD'];
    if (methods.includes(method)) return undefined;
    for (const other of methods) allowed.add(other);
  }
  if (allowed.size === 0) return new ApiError('not_found', 'There is no such procedure.');
  return methodNotAllowed([...allowed]);
}
