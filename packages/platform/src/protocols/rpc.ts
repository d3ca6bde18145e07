import type { AnyTRPCProcedure, AnyTRPCRouter } from '@trpc/server';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { MAX_BATCH_SIZE, NEXT_CURSOR_FIELD } from '../contract/protocol.js';
import { ApiError, type ErrorShape } from '../errors/api-error.js';
import { type RequestContext, type RequestTarget, toErrorShape } from '../operations/builder.js';
import { isPage } from '../operations/list-operations.js';
import { checkDepth } from './body.js';
import { type ContextOptions, createContextFactory } from './context.js';
import { reportError, sendJson } from './responses.js';
import { addVary, respondWithTrpc } from './rpc-stream.js';

/** What the URL of a request says, parsed as tRPC does, so that exactly the counted calls are run. */
interface RpcUrl {
  readonly names: readonly string[];
  readonly isBatch: boolean;
  /** JSON: the input of a query. */
  readonly input: string | null;
  /** Whether the URL carries the parameters of a WebSocket handshake. */
  readonly hasConnectionParams: boolean;
}

/** What a request asks for, with its URL, which is parsed once. */
interface RpcTarget extends RequestTarget {
  readonly url: RpcUrl;
}

interface PlainCall {
  readonly name: string;
  readonly procedure: AnyTRPCProcedure;
  readonly input: unknown;
}

type CallResult = { readonly result: { readonly data: unknown } } | { readonly error: ErrorShape };

/** Serves tRPC clients. Plain calls, which nearly all are, run here; tRPC itself responds to the others: see rpc-stream.ts. */
export function registerRpc(
  app: FastifyInstance,
  { router, ...options }: ContextOptions & { readonly router: AnyTRPCRouter },
): void {
  const procedures = new Map(Object.entries<AnyTRPCProcedure>(router._def.procedures));
  const operations = new Map(options.operations.map((operation) => [operation.name, operation]));
  const createContext = createContextFactory(options);
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
      error: findTargetError(procedures, request, names),
    };
  };
  app.route({
    method: [...app.supportedMethods],
    url: '/:path',
    config: { readTarget },
    async handler(request, reply) {
      const { url } = request.admission.target as RpcTarget;
      const { length } = url.names;
      if (length > MAX_BATCH_SIZE) {
        const message = `A batch holds at most ${MAX_BATCH_SIZE} calls; this one has ${length}.`;
        throw new ApiError('invalid_request', { message });
      }
      const text = request.method === 'POST' ? String(request.body ?? '') : (url.input ?? '');
      // Checked before any parser, because tRPC itself parses a call that is not plain.
      checkDepth(text);
      const context = createContext(request, reply);
      const calls = readPlainCalls(procedures, request, url, text);
      const report = (error: unknown, path?: string) => {
        context.idempotency?.setReplayed(false);
        return reportError(error, request, reply, path);
      };
      addVary(reply);
      if (calls === undefined) return respondWithTrpc({ router, context, report }, request, reply);
      const nextCursors = new Map<number, number>();
      const results = await Promise.all(
        calls.map((call, index) => {
          const ctx = pages.has(call.name) ? collectCursor(context, nextCursors, index) : context;
          return runPlainCall(call, index, ctx, report);
        }),
      );
      const listed = results.flatMap((result, index) =>
        'result' in result && pages.has(calls[index]?.name ?? '')
          ? `${index}=${nextCursors.get(index) ?? null}`
          : [],
      );
      if (listed.length > 0) reply.header(NEXT_CURSOR_FIELD, listed.join(', '));
      const statuses = new Set(results.map((each) => ('error' in each ? each.error.data.httpStatus : 200)));
      const [status = 200] = statuses;
      reply.code(statuses.size > 1 ? 207 : status);
      return sendJson(reply, JSON.stringify(url.isBatch ? results : results[0]));
    },
  });
}

type ProcedureMap = ReadonlyMap<string, AnyTRPCProcedure>;

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

/** Undefined when tRPC itself has to respond. */
function readPlainCalls(
  procedures: ProcedureMap,
  request: FastifyRequest,
  { names, isBatch, hasConnectionParams }: RpcUrl,
  text: string,
): readonly PlainCall[] | undefined {
  const type = request.method === 'POST' ? 'mutation' : 'query';
  const { accept = '', 'trpc-accept': trpcAccept } = request.headers;
  if (hasConnectionParams || trpcAccept !== undefined || accept.includes('jsonl')) return undefined;
  const inputs = parseInputs(text, isBatch);
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
function parseInputs(text: string, isBatch: boolean): Readonly<Record<number, unknown>> | undefined {
  if (text === '') return {};
  try {
    const value: unknown = JSON.parse(text);
    if (!isBatch) return { 0: value };
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<number, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** The context of one call of a batch. Like the batch's own, it is flat: see runWithMiddleware. */
function collectCursor(
  context: RequestContext,
  nextCursors: Map<number, number>,
  index: number,
): RequestContext {
  const linkNextPage = (cursor: number) => void nextCursors.set(index, cursor);
  return Object.assign(Object.create(Object.getPrototypeOf(context)), context, { linkNextPage });
}

/**
 * Runs a call, and returns its part of a response in tRPC's format (https://trpc.io/docs/rpc). tRPC's own resolveResponse
 * builds a web Request and Response, and two abort controllers per call, which took four times as long as the procedures.
 */
function runPlainCall(
  { name, procedure, input }: PlainCall,
  batchIndex: number,
  ctx: RequestContext,
  report: (error: unknown, path: string) => ApiError,
): Promise<CallResult> {
  const { type } = procedure._def;
  const getRawInput = async () => input;
  return procedure({ ctx, path: name, type, getRawInput, signal: undefined, batchIndex }).then(
    (data: unknown) => ({ result: { data } }),
    (error) => ({ error: toErrorShape(report(error, name), name) }),
  );
}
