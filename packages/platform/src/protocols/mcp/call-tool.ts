import { TRPCError } from '@trpc/server';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ZodRealError } from 'zod';
import { ApiError } from '../../errors/api-error.js';
import { toApiError } from '../../operations/error-mapping.js';
import { IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_FORM } from '../../operations/idempotency-key.js';
import type { CreateContext } from '../context.js';
import { createIdempotencyHeader, hashRepeated } from '../idempotency-header.js';
import { reportError } from '../responses.js';
import { toToolError } from './advice.js';
import { IDEMPOTENCY_ARGUMENT, type Tool } from './tools.js';

/** A request, and where its response goes. */
export interface ToolExchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly createContext: CreateContext;
  /** Why the tool failed. Its result says so, and the log once the request is admitted. */
  failure?: unknown;
}

export type Arguments = Readonly<Record<string, unknown>>;

/** As the protocol defines it: `content` is the structured content as text, for clients that know no other. */
export interface ToolResult {
  readonly content: [{ readonly type: 'text'; readonly text: string }];
  readonly structuredContent?: unknown;
  readonly isError?: true;
  // The SDK's results are open.
  readonly [member: string]: unknown;
}

/** What a tool without output returns, because a model may take nothing at all for a failure. */
const DONE: ToolResult = { content: [{ type: 'text', text: 'Done.' }] };

/** Calls the operation of a tool. Never rejects, because an error of the operation is a result, too. */
export async function callTool(tool: Tool, all: Arguments, exchange: ToolExchange): Promise<ToolResult> {
  try {
    return await run(tool, all, exchange);
  } catch (error) {
    exchange.failure = error;
    const { readOnlyHint } = tool.listed.annotations ?? {};
    return { ...toResult(toToolError(toApiError(error), !readOnlyHint, exchange.request.id)), isError: true };
  }
}

/** Adds the headers of a tool's failure, and reports it. The response of a failed tool is a 200. */
export function reportFailure({ request, reply, failure }: ToolExchange): void {
  if (failure === undefined) return;
  reply.removeHeader('idempotency-replayed');
  const [path] = request.admission.target.calls;
  request.report.errorStatus = reportError(failure, request, reply, path).status;
}

/** Of the two places for an Idempotency-Key, the header wins over the argument. */
async function run(tool: Tool, all: Arguments, exchange: ToolExchange): Promise<ToolResult> {
  const { procedure, isPage } = tool;
  const { name: path, idempotent, output: schema } = tool.operation;
  const { request, reply } = exchange;
  const { [IDEMPOTENCY_ARGUMENT]: argument, ...rest } = all;
  const input = idempotent ? rest : all;
  const key = idempotent ? (request.headers['idempotency-key'] ?? argument) : undefined;
  const idempotency =
    typeof key === 'string' ? createIdempotencyHeader(key, hash(tool, input), reply) : undefined;
  let nextCursor: number | null = null;
  const linkNextPage = (cursor: number) => {
    nextCursor = cursor;
  };
  const ctx = exchange.createContext(request, reply, linkNextPage, idempotency);
  const { type } = procedure._def;
  // The input is checked after the scope.
  const getRawInput = async () => {
    checkNames(tool, all);
    if (key === argument && argument !== undefined) await checkIdempotencyKey(tool, argument, input);
    return input;
  };
  const output = await procedure({ ctx, path, type, getRawInput, signal: undefined, batchIndex: 0 });
  if (schema === undefined) return DONE;
  return toResult(isPage ? { items: output, nextCursor } : output);
}

function toResult(structuredContent: unknown): ToolResult {
  return { content: [{ type: 'text', text: JSON.stringify(structuredContent) }], structuredContent };
}

/**
 * Hashes what a repetition has to repeat: the arguments, not the bytes of the body, because a repeated message has a new
 * id. They are hashed in the order of the parameters, because a model may write them in any order.
 */
function hash({ listed }: Tool, input: Arguments): Uint8Array {
  const known = Object.keys(listed.inputSchema.properties ?? {}).filter((name) => Object.hasOwn(input, name));
  const members = [...known, ...Object.keys(input)].map((name) => [name, input[name]]);
  return hashRepeated('mcp', JSON.stringify(Object.fromEntries(members)));
}

/** How many of a client's names an error repeats */
const MAX_NAMES = 5;
const MAX_NAME_LENGTH = 50;

/** @throws ApiError for arguments that the tool does not have, naming these and the tool's own */
function checkNames({ listed: { inputSchema } }: Tool, all: Arguments): void {
  const { properties = {}, additionalProperties } = inputSchema;
  if (additionalProperties !== false) return;
  const unknown = Object.keys(all)
    .filter((name) => !Object.hasOwn(properties, name))
    .slice(0, MAX_NAMES)
    .map((name) => name.slice(0, MAX_NAME_LENGTH));
  if (unknown.length === 0) return;
  const known = Object.keys(properties);
  const those = known.length === 0 ? 'It takes none.' : `It takes ${known.join(', ')}.`;
  throw new ApiError('invalid_request', {
    message: `This tool has no argument ${unknown.join(', ')}. ${those}`,
    fields: Object.fromEntries(unknown.map((name) => [name, 'is not an argument of this tool'])),
  });
}

/** @throws TRPCError for a malformed key, naming all other invalid arguments, too */
async function checkIdempotencyKey({ operation }: Tool, argument: unknown, input: Arguments): Promise<void> {
  if (typeof argument === 'string' && IDEMPOTENCY_KEY.test(argument)) return;
  const wrong = `must be a string of ${IDEMPOTENCY_KEY_FORM}`;
  const message = argument === null ? `${wrong}, or left out; null is not allowed` : wrong;
  const others = (await operation.input?.safeParseAsync(input))?.error?.issues ?? [];
  const cause = new ZodRealError([...others, { code: 'custom', path: [IDEMPOTENCY_ARGUMENT], message }]);
  throw new TRPCError({ code: 'BAD_REQUEST', cause });
}
