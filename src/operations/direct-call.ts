import { type AnyTRPCProcedure, TRPCError } from '@trpc/server';
import type { z } from 'zod';
import { type Deprecation, isRemoved } from '../contract/deprecation.js';
import type { IdempotencyKey } from '../database/idempotency.js';
import { ApiError } from '../errors/api-error.js';
import { errorTable } from '../errors/error-table.js';
import { findScopeError } from '../keys/authenticator.js';
import type { RequestContext } from './builder.js';
import { findDefinitionError, type OperationDefinition } from './definition.js';

/** 1 to 255 visible ASCII characters. */
export const IDEMPOTENCY_KEY = /^[!-~]{1,255}$/;

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
export function toOperation(name: string, procedure: AnyTRPCProcedure): AnyTRPCProcedure {
  const definition = procedure._def as unknown as OperationDefinition;
  const definitionError = findDefinitionError(definition);
  if (definitionError !== undefined)
    throw new TypeError(`${name} cannot be an operation: ${definitionError}`);
  const { inputs, resolver, meta } = definition;
  const [schema] = inputs;
  const { scope, deprecation, idempotent = false } = meta;
  const call = async (options: CallOptions) => {
    const { path, signal, batchIndex } = options;
    const scopeError = findScopeError(options.ctx.apiKey, scope);
    if (scopeError !== undefined) throw scopeError;
    if (options.ctx.rehearsal !== undefined) throw options.ctx.rehearsal.createError(scope);
    if (deprecation !== undefined && isRemoved(deprecation, options.ctx.now())) throw removed(deprecation);
    const input = schema && parseInput(schema, await options.getRawInput());
    const ctx = idempotent ? withIdempotencyKey(options) : options.ctx;
    return resolver({ ctx, input, path, signal, batchIndex });
  };
  return Object.assign(call, procedure);
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
  const { apiKey, idempotency: header } = ctx;
  if (header === undefined) return ctx;
  if (!IDEMPOTENCY_KEY.test(header.value)) {
    throw new ApiError('invalid_request', {
      message: 'Idempotency-Key must have 1 to 255 visible ASCII characters.',
    });
  }
  const value: IdempotencyKey = { apiKeyId: apiKey.id, operation: path, batchIndex, header };
  return Object.create(ctx, { idempotencyKey: { value } });
}
