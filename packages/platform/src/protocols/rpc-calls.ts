import type { AnyTRPCProcedure } from '@trpc/server';
import type { FastifyRequest } from 'fastify';
import type { RequestContext } from '../operations/builder.js';

export type ProcedureMap = ReadonlyMap<string, AnyTRPCProcedure>;

/** What the URL of a request says, parsed as tRPC does, so that exactly the counted calls are run. */
export interface RpcUrl {
  readonly names: readonly string[];
  readonly isBatch: boolean;
  /** JSON: the input of a query. */
  readonly input: string | null;
  /** Whether the URL carries the parameters of a WebSocket handshake. */
  readonly hasConnectionParams: boolean;
}

/** A call that runs without tRPC's own resolver */
export interface PlainCall {
  readonly name: string;
  readonly procedure: AnyTRPCProcedure;
  readonly input: unknown;
}

/** What a call has come to, with the next page of a list. */
export type CallOutcome =
  | { readonly name: string; readonly data: unknown; readonly nextCursor: number | undefined }
  | { readonly name: string; readonly error: unknown };

/** Undefined when tRPC itself has to respond. */
export function readPlainCalls(
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

/**
 * Runs a call. Never rejects. tRPC's own resolveResponse builds a web Request and Response, and two abort controllers per call,
 * which took four times as long as the procedures.
 */
export function runPlainCall(
  { name, procedure, input }: PlainCall,
  batchIndex: number,
  context: RequestContext,
  isPage: boolean,
): Promise<CallOutcome> {
  let nextCursor: number | undefined;
  const linkNextPage = (cursor: number) => {
    nextCursor = cursor;
  };
  const ctx = isPage ? withNextPage(context, linkNextPage) : context;
  const { type } = procedure._def;
  const getRawInput = async () => input;
  return procedure({ ctx, path: name, type, getRawInput, signal: undefined, batchIndex }).then(
    (data: unknown) => ({ name, data, nextCursor }),
    (error) => ({ name, error }),
  );
}

/** The context of one call of a batch. Like the batch's own, it is flat: see runWithMiddleware. */
function withNextPage(context: RequestContext, linkNextPage: RequestContext['linkNextPage']): RequestContext {
  return Object.assign(Object.create(Object.getPrototypeOf(context)), context, { linkNextPage });
}
