import { type AnyTRPCProcedure, getTRPCErrorFromUnknown } from '@trpc/server';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { MAX_BATCH_SIZE } from '../contract/protocol.js';
import { ApiError, type ErrorShape } from '../errors/api-error.js';
import { identify } from '../monitoring/request-log.js';
import { type OperationMeta, type RequestContext, toErrorShape } from '../operations/builder.js';
import { toApiError } from '../operations/error-mapping.js';
import { sendJson } from './body.js';
import { createContextFactory, type ServeOptions } from './request-context.js';
import { addVary, respondWithTrpc } from './rpc-stream.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** Read from the URL of a tRPC request when it is first needed. */
    rpcTarget: RpcTarget | null;
  }
}

/** The calls in a URL, parsed the way tRPC parses them, so that exactly the calls that are counted are run. */
interface RpcTarget {
  readonly names: readonly string[];
  readonly isBatch: boolean;
  /** JSON: the input of a query. */
  readonly input: string | null;
  /** Whether it carries the parameters of a WebSocket handshake. */
  readonly hasConnectionParams: boolean;
}

interface PlainCall {
  readonly name: string;
  readonly procedure: AnyTRPCProcedure;
  readonly input: unknown;
}

type CallResult = { readonly result: { readonly data: unknown } } | { readonly error: ErrorShape };

/**
 * Serves the router to tRPC clients. Nearly all requests are plain: known procedures of one type, with JSON input and
 * a response in one piece. tRPC itself responds to all others; see rpc-stream.ts.
 */
export function registerRpc(app: FastifyInstance, { router, stores, now }: ServeOptions): void {
  const procedures = new Map(Object.entries<AnyTRPCProcedure>(router._def.procedures));
  const createContext = createContextFactory({ router, stores, now });
  const findMeta = (name = '') => procedures.get(name)?._def.meta as OperationMeta | undefined;
  app.decorateRequest('rpcTarget', null);
  app.route({
    method: [...app.supportedMethods],
    url: '/:path',
    config: {
      operation: (request) => readTarget(request).names,
      scope(request) {
        const { names, isBatch } = readTarget(request);
        return isBatch ? undefined : findMeta(names[0])?.scope;
      },
      // A batch that is too large runs nothing, and counts as one request.
      cost(request) {
        const { length } = readTarget(request).names;
        return length > MAX_BATCH_SIZE ? 1 : length;
      },
      deprecation(request) {
        const name = readTarget(request).names.find((name) => findMeta(name)?.deprecation !== undefined);
        return findMeta(name)?.deprecation;
      },
      routeError: (request) => findTargetError(procedures, request, readTarget(request).names),
    },
    async handler(request, reply) {
      const target = readTarget(request);
      const { length } = target.names;
      if (length > MAX_BATCH_SIZE) {
        const message = `A batch holds at most ${MAX_BATCH_SIZE} calls; this one has ${length}.`;
        throw new ApiError('invalid_request', { message });
      }
      const context = createContext(request, reply);
      const calls = readPlainCalls(procedures, request, target);
      addVary(reply);
      if (calls !== undefined) return runPlainCalls(calls, target.isBatch, context, request, reply);
      return respondWithTrpc(
        {
          router,
          context,
          onError: ({ error, path }) => void reportError(error, path, context, request, reply),
        },
        request,
        reply,
      );
    },
  });
}

type ProcedureMap = ReadonlyMap<string, AnyTRPCProcedure>;

function readTarget(request: FastifyRequest): RpcTarget {
  if (request.rpcTarget !== null) return request.rpcTarget;
  const { path } = request.params as { path: string };
  const query = request.query as URLSearchParams;
  const isBatch = query.get('batch') === '1';
  request.rpcTarget = {
    names: isBatch ? path.split(',') : [path],
    isBatch,
    input: query.get('input'),
    hasConnectionParams: query.has('connectionParams'),
  };
  return request.rpcTarget;
}

/** 404 when none of the procedures exists, 405 when those that exist need another method. */
function findTargetError(procedures: ProcedureMap, { method }: FastifyRequest, names: readonly string[]) {
  const allowed = new Set<string>();
  for (const name of names) {
    const procedure = procedures.get(name);
    if (procedure === undefined) continue;
    const methods = procedure._def.type === 'mutation' ? ['POST'] : ['GET', 'HEAD'];
    if (methods.includes(method)) return undefined;
    for (const other of methods) allowed.add(other);
  }
  if (allowed.size === 0) return new ApiError('not_found');
  return new ApiError('method_not_allowed', { headers: { allow: [...allowed].join(', ') } });
}

/** Undefined when tRPC itself has to respond. */
function readPlainCalls(
  procedures: ProcedureMap,
  request: FastifyRequest,
  { names, isBatch, input, hasConnectionParams }: RpcTarget,
): readonly PlainCall[] | undefined {
  const type = request.method === 'POST' ? 'mutation' : 'query';
  const { accept = '', 'trpc-accept': trpcAccept } = request.headers;
  if (hasConnectionParams || trpcAccept !== undefined || accept.includes('jsonl')) return undefined;
  const inputs = parseInputs(request.method === 'POST' ? String(request.body ?? '') : input, isBatch);
  if (inputs === undefined) return undefined;
  const calls: PlainCall[] = [];
  for (const [index, name] of names.entries()) {
    const procedure = procedures.get(name);
    if (procedure?._def.type !== type) return undefined;
    calls.push({ name, procedure, input: isBatch ? inputs[index] : inputs[0] });
  }
  return calls;
}

/** Inputs by their position in the batch; undefined when they are malformed. */
function parseInputs(text: string | null, isBatch: boolean): Readonly<Record<number, unknown>> | undefined {
  if (text === null || text === '') return {};
  try {
    const value: unknown = JSON.parse(text);
    if (!isBatch) return { 0: value };
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<number, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Runs the calls and responds in tRPC's format (https://trpc.io/docs/rpc). tRPC's own resolveResponse builds a web
 * Request and Response, and two abort controllers per call, which took four times as long as the procedures.
 */
async function runPlainCalls(
  calls: readonly PlainCall[],
  isBatch: boolean,
  ctx: RequestContext,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const run = ({ name, procedure, input }: PlainCall, batchIndex: number): Promise<CallResult> => {
    const { type } = procedure._def;
    const getRawInput = async () => input;
    return procedure({ ctx, path: name, type, getRawInput, signal: undefined, batchIndex }).then(
      (data: unknown) => ({ result: { data } }),
      (error) => ({ error: toErrorShape(reportError(error, name, ctx, request, reply), name) }),
    );
  };
  const results = await Promise.all(calls.map(run));
  const statuses = new Set(results.map((result) => ('error' in result ? result.error.data.httpStatus : 200)));
  const [status = 200] = statuses;
  reply.code(statuses.size > 1 ? 207 : status);
  return sendJson(reply, JSON.stringify(isBatch ? results : results[0]));
}

/** The error that the client sees. The log gets the cause, and the request's log line the first error code. */
function reportError(
  error: unknown,
  path: string | undefined,
  { idempotency }: RequestContext,
  request: FastifyRequest,
  reply: FastifyReply,
): ApiError {
  const apiError = toApiError(getTRPCErrorFromUnknown(error));
  request.errorCode ??= apiError.code;
  idempotency?.setReplayed(false);
  // A rehearsed error has no cause.
  if (apiError.status >= 500 && apiError.cause !== undefined)
    request.log.error({ ...identify(request), err: apiError.cause, path }, apiError.message);
  reply.headers(apiError.headers);
  return apiError;
}
