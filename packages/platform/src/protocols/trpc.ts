import type { AnyTRPCProcedure, AnyTRPCRouter } from '@trpc/server';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Begin, toHandler } from '../admission/begin.js';
import { MAX_BATCH_SIZE, NEXT_CURSOR_FIELD } from '../contract/protocol.js';
import { ApiError } from '../errors/api-error.js';
import { type RequestContext, type RequestTarget, toErrorShape } from '../operations/builder.js';
import { isPage, type Operation } from '../operations/list-operations.js';
import { checkDepth } from './body.js';
import type { CreateContext } from './context.js';
import { reportError, sendJson } from './responses.js';
import {
  type CallOutcome,
  type ProcedureMap,
  type RpcUrl,
  readPlainCalls,
  runPlainCall,
} from './rpc-calls.js';
import { addVary, respondWithTrpc } from './rpc-stream.js';

/** What a request asks for, with its URL, which is parsed once. */
interface RpcTarget extends RequestTarget {
  readonly url: RpcUrl;
}

export interface RpcOptions {
  readonly operations: readonly Operation[];
  readonly router: AnyTRPCRouter;
  readonly createContext: CreateContext;
}

/** Serves tRPC clients. Plain calls, which nearly all are, run here; tRPC itself responds to the others: see rpc-stream.ts. */
export function registerRpc(app: FastifyInstance, options: RpcOptions): void {
  const { router, createContext } = options;
  const procedures = new Map(Object.entries<AnyTRPCProcedure>(router._def.procedures));
  const operations = new Map(options.operations.map((operation) => [operation.name, operation]));
  const pages = new Set(options.operations.filter(isPage).map(({ name }) => name));
  const costOf = (name: string) => operations.get(name)?.cost ?? 1;
  const readTarget = (request: FastifyRequest): RpcTarget => {
    const url = readUrl(request);
    const { names, isBatch } = url;
    const called = names.flatMap((name) => operations.get(name) ?? []);
    return {
      url,
      calls: names,
      // A batch that is too large runs nothing, and counts as one request.
      cost: names.length > MAX_BATCH_SIZE ? 1 : names.reduce((sum, name) => sum + costOf(name), 0),
      freeForKey: names.length === 1 ? called[0]?.freeForKey : undefined,
      scope: isBatch ? undefined : called[0]?.scope,
      deprecation: called.find(({ deprecation }) => deprecation !== undefined)?.deprecation,
      listAllowed: () => listAllowed(procedures, names),
      mayBegin: request.method !== 'POST' && called.every(({ mayBegin }) => mayBegin),
      error: findTargetError(procedures, request, names),
    };
  };
  const begin: Begin = async (request, reply) => {
    const { url } = request.admission.target as RpcTarget;
    const { length } = url.names;
    if (length > MAX_BATCH_SIZE) {
      const message = `A batch holds at most ${MAX_BATCH_SIZE} calls; this one has ${length}.`;
      throw new ApiError('invalid_request', { message });
    }
    const text = request.method === 'POST' ? String(request.body ?? '') : (url.input ?? '');
    // Checked before any parser, because tRPC itself parses a call that is not plain.
    checkDepth(text);
    const calls = readPlainCalls(procedures, request, url, text);
    if (calls === undefined)
      return () => respondWithTrpc(router, createContext(request, reply), request, reply);
    const context = createContext(request, reply);
    const outcomes = await Promise.all(
      calls.map((call, index) => runPlainCall(call, index, context, pages.has(call.name))),
    );
    return () => {
      const listed = outcomes.flatMap((outcome, index) =>
        'data' in outcome && pages.has(outcome.name) ? `${index}=${outcome.nextCursor ?? null}` : [],
      );
      if (listed.length > 0) reply.header(NEXT_CURSOR_FIELD, listed.join(', '));
      return sendOutcomes(outcomes, url, context, request, reply);
    };
  };
  app.route({
    method: [...app.supportedMethods],
    url: '/:path',
    config: { readTarget, begin },
    handler: toHandler(begin),
  });
}

/** Sends the outcomes of calls in tRPC's format (https://trpc.io/docs/rpc). Outcomes of several statuses are a 207. */
function sendOutcomes(
  outcomes: readonly CallOutcome[],
  { isBatch }: RpcUrl,
  { idempotency }: RequestContext,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  addVary(reply);
  const statuses = new Set<number>();
  const results = outcomes.map((outcome) => {
    if ('data' in outcome) {
      statuses.add(200);
      return { result: { data: outcome.data } };
    }
    idempotency?.setReplayed(false);
    const error = reportError(outcome.error, request, reply, outcome.name);
    statuses.add(error.status);
    return { error: toErrorShape(error, outcome.name) };
  });
  const [status = 200] = statuses;
  reply.code(statuses.size > 1 ? 207 : status);
  return sendJson(reply, JSON.stringify(isBatch ? results : results[0]));
}

function readUrl(request: FastifyRequest): RpcUrl {
  const { path } = request.params as { path: string };
  const query = request.query as URLSearchParams;
  const isBatch = query.get('batch') === '1';
  return {
    names: isBatch ? path.split(',') : [path],
    isBatch,
    input: query.get('input'),
    hasConnectionParams: query.has('connectionParams'),
  };
}

function listAllowed(procedures: ProcedureMap, names: readonly string[]): string[] {
  const types = names.map((name) => procedures.get(name)?._def.type);
  const queries = types.includes('query') ? ['GET', 'HEAD'] : [];
  return types.includes('mutation') ? [...queries, 'POST'] : queries;
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
