import { type AnyTRPCProcedure, TRPCError } from '@trpc/server';
import { z } from 'zod';
import { type Deprecation, isRemoved } from '../contract/deprecation.js';
import { SCOPES } from '../contract/scopes.js';
import { createIdempotencyKey } from '../database/idempotency.js';
import { ApiError } from '../errors/api-error.js';
import { errorTable } from '../errors/error-table.js';
import { findScopeError } from '../keys/scope-check.js';
import type { OperationMeta, RequestContext } from './builder.js';

/** The members of a procedure that tRPC's runner reads but its types do not declare. */
interface Definition {
  readonly type: 'query' | 'mutation' | 'subscription';
  readonly meta?: OperationMeta;
  readonly inputs: readonly z.ZodType[];
  readonly output?: z.ZodType;
  readonly middlewares: readonly { readonly _type?: 'input' | 'output' }[];
  readonly resolver: (options: object) => Promise<unknown>;
}

type JsonSchema = z.core.JSONSchema.BaseSchema;

interface CallOptions {
  readonly ctx: RequestContext;
  readonly path: string;
  readonly signal: AbortSignal | undefined;
  readonly batchIndex: number;
  readonly getRawInput: () => Promise<unknown>;
}

/**
 * Returns a procedure that takes the same arguments, but runs without tRPC's middleware runner.
 *
 * The runner copies the call's options eight times, parses the input asynchronously, for which zod has no compiled
 * path, and validates the output. Together that takes longer than parsing the input and responding. Outputs need no
 * validation: the stores' types and the database's constraints guarantee them. Their schemas are for the document and
 * the clients' types.
 *
 * @throws TypeError when the procedure needs the runner, or lacks what an operation must declare
 */
export function callDirectly(name: string, procedure: AnyTRPCProcedure): AnyTRPCProcedure {
  const definition = procedure._def as unknown as Definition;
  const problem = findProblem(definition);
  if (problem !== undefined) throw new TypeError(`${name} cannot be an operation: ${problem}`);
  const { inputs, resolver, meta } = definition;
  const [schema] = inputs;
  const { scope, deprecation, idempotent = false } = meta as OperationMeta;
  const call = async (options: CallOptions) => {
    const { path, signal, batchIndex } = options;
    const scopeError = findScopeError(options.ctx.apiKey, scope);
    if (scopeError !== undefined) throw scopeError;
    if (deprecation !== undefined && isRemoved(deprecation, options.ctx.now())) throw removed(deprecation);
    const input = schema && parseInput(schema, await options.getRawInput());
    const ctx = idempotent ? withIdempotencyKey(options) : options.ctx;
    // Returning the promise itself would take two more microtasks.
    return await resolver({ ctx, input, path, signal, batchIndex });
  };
  return Object.assign(call, procedure);
}

function findProblem({ type, meta, inputs, output, middlewares }: Definition): string | undefined {
  if (meta === undefined) return 'it has no .meta().';
  if (output === undefined) return 'it has no .output(); without one, declare .output(z.void()).';
  if (inputs.length > 1) return 'it has more than one .input(); extend the schema instead.';
  const middlewareCount = middlewares.filter(({ _type }) => _type === undefined).length;
  if (middlewareCount > 1)
    return 'it has a .use(), which would be skipped: src/operations/direct-call.ts calls procedures without their middleware.';
  if (!SCOPES.includes(meta.scope)) return `its scope is none of ${SCOPES.join(', ')}.`;
  const { method } = meta.openapi;
  if (type !== (method === 'GET' ? 'query' : 'mutation')) return `a ${type} cannot be served as ${method}.`;
  if (meta.success !== undefined && output instanceof z.ZodVoid)
    return 'it has no output, which is a 204, and declares a 201.';
  const unbounded = inputs[0] && findUnboundedNumber(toInputSchema(inputs[0]), 'its input');
  if (unbounded !== undefined)
    return `${unbounded} accepts any number: use integer() or int64() of src/operations/input.ts.`;
  return undefined;
}

function toInputSchema(input: z.ZodType): JsonSchema {
  return z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' });
}

/** The member that accepts a number of any size, which could reach an integer column and become a 500. */
function findUnboundedNumber(schema: JsonSchema, name: string): string | undefined {
  if (isUnboundedNumber(schema)) return name;
  const { properties, $defs, items, prefixItems, additionalProperties, anyOf, oneOf, allOf } = schema;
  const named = Object.entries({ ...$defs, ...properties });
  const unnamed = [items, prefixItems, additionalProperties, anyOf, oneOf, allOf].flat();
  for (const [childName, child] of [...named, ...unnamed.map((child) => [name, child] as const)]) {
    const found = typeof child === 'object' ? findUnboundedNumber(child, childName) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

function isUnboundedNumber(schema: JsonSchema): boolean {
  const { type, minimum, exclusiveMinimum, maximum, exclusiveMaximum } = schema;
  // A nullable number has two types.
  const isNumber = [type].flat().some((each) => each === 'number' || each === 'integer');
  if (!isNumber || 'const' in schema || 'enum' in schema) return false;
  return (minimum ?? exclusiveMinimum) === undefined || (maximum ?? exclusiveMaximum) === undefined;
}

function parseInput(schema: z.ZodType, value: unknown): unknown {
  try {
    return schema.parse(value);
  } catch (cause) {
    throw new TRPCError({ code: 'BAD_REQUEST', cause });
  }
}

function removed({ successor }: Deprecation): ApiError {
  const message = `${errorTable.operation_removed.message} Use ${successor} instead.`;
  return new ApiError('operation_removed', { message });
}

function withIdempotencyKey({ ctx, path, batchIndex }: CallOptions): RequestContext {
  const { apiKey, idempotency, now } = ctx;
  if (idempotency === undefined) return ctx;
  const call = { apiKeyId: apiKey.id, operation: path, batchIndex, receivedAt: now() };
  const idempotencyKey = createIdempotencyKey(idempotency, call);
  return Object.create(ctx, { idempotencyKey: { value: idempotencyKey } });
}
