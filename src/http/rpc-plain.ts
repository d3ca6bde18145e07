import { type AnyTRPCProcedure, getTRPCErrorFromUnknown } from '@trpc/server';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type ApiError, type ErrorShape, toApiError } from '../errors.js';
import { type Context, toErrorShape } from '../trpc.js';
import { keepFractions, sendJson } from './json.js';
import type { RpcCall } from './rpc-call.js';

export type Procedures = Readonly<Record<string, AnyTRPCProcedure>>;

/** A call whose procedure and input are known before anything runs. */
export interface PlainCall {
  readonly name: string;
  readonly procedure: AnyTRPCProcedure;
  readonly input: unknown;
}

/**
 * The calls of a request as nearly all are: known procedures of one type, with input that is JSON, and an answer in one
 * piece. Undefined for any other, which are left to tRPC.
 */
export function readPlainCalls(
  procedures: Procedures,
  request: FastifyRequest,
  { names, isBatch, input, hasConnectionParams }: RpcCall,
): readonly PlainCall[] | undefined {
  const type = request.method === 'POST' ? 'mutation' : 'query';
  const { accept = '', 'trpc-accept': trpcAccept } = request.headers;
  if (hasConnectionParams || trpcAccept !== undefined || accept.includes('jsonl')) return undefined;
  const inputs = parseInputs(request.method === 'POST' ? String(request.body ?? '') : input, isBatch);
  const calls: PlainCall[] = [];
  for (const [index, name] of names.entries()) {
    const procedure = Object.hasOwn(procedures, name) ? procedures[name] : undefined;
    if (procedure?._def.type !== type || inputs === undefined) return undefined;
    calls.push({ name, procedure, input: isBatch ? inputs[index] : inputs[0] });
  }
  return calls;
}

/** The inputs by their place in the batch; undefined when they are not what they must be. */
function parseInputs(text: string | null, isBatch: boolean): Readonly<Record<number, unknown>> | undefined {
  if (text === null || text === '') return {};
  try {
    const value: unknown = JSON.parse(keepFractions(text));
    if (!isBatch) return { 0: value };
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

type Answer = { readonly result: { readonly data: unknown } } | { readonly error: ErrorShape };

/**
 * Runs plain calls and words their answers as https://trpc.io/docs/rpc says, in place of tRPC's resolveResponse. That
 * makes a web Request and Response, and two abort controllers for each call, which took four times what the procedures
 * take.
 */
export async function answerPlainCalls(
  calls: readonly PlainCall[],
  isBatch: boolean,
  context: Context,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const run = async ({ name, procedure, input }: PlainCall, batchIndex: number): Promise<Answer> => {
    try {
      const options = {
        ctx: context,
        path: name,
        type: procedure._def.type,
        getRawInput: async () => input,
        signal: undefined,
        batchIndex,
      };
      return { result: { data: await procedure(options) } };
    } catch (error) {
      return { error: toErrorShape(noteError(error, name, request, reply), name) };
    }
  };
  const answers = await Promise.all(calls.map(run));
  const statuses = new Set(answers.map((answer) => ('error' in answer ? answer.error.data.httpStatus : 200)));
  const [status = 200] = statuses;
  reply.code(statuses.size > 1 ? 207 : status).header('vary', varyBy(reply));
  return sendJson(reply, JSON.stringify(isBatch ? answers : answers[0]));
}

/** What a client learns of a failed call. The log has the cause, and the code of the first. */
export function noteError(
  error: unknown,
  path: string | undefined,
  request: FastifyRequest,
  reply: FastifyReply,
): ApiError {
  const apiError = toApiError(getTRPCErrorFromUnknown(error));
  request.errorCode ??= apiError.code;
  if (apiError.status >= 500)
    request.log.error({ reqId: request.id, err: apiError.cause, path }, apiError.message);
  reply.headers(apiError.headers);
  return apiError;
}

/** What tRPC's answers vary by, beside what CORS has named. */
export function varyBy(reply: FastifyReply): string {
  const named = reply.getHeader('vary');
  return named === undefined ? 'trpc-accept, accept' : `${named}, trpc-accept, accept`;
}
