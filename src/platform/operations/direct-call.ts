import { tracingChannel } from 'node:diagnostics_channel';
import type { AnyTRPCProcedure } from '@trpc/server';
import { z } from 'zod';
import { IDENTITY } from '#store/identity.js';
import type { Plan } from '#store/plans.js';
import { type Deprecation, isRemoved } from '../contract/deprecation.js';
import { ApiError, type ErrorCode } from '../errors/api-error.js';
import { errorTable } from '../errors/error-table.js';
import { findScopeError } from '../keys/authenticator.js';
import type { RequestContext } from './builder.js';
import { findDefinitionError, type OperationDefinition } from './definition.js';
import { toApiError } from './error-mapping.js';
import { withOnce } from './idempotency-key.js';
import { parseInput } from './parse-input.js';

/** For tracing, around each call of an operation; in a batch these are several. Nothing is published without subscribers. */
const operationChannel = tracingChannel<unknown, OperationCall>(`${IDENTITY.name}.operation`);

interface OperationCall {
  readonly operation: string;
  /** The id and the plan of the key that calls */
  readonly keyId: string;
  readonly plan: Plan;
}

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
  // It may be anything: types are no obstacle to those who use `any`.
  const definition = (procedure._def ?? {}) as unknown as OperationDefinition;
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
    if (deprecation !== undefined && isRemoved(deprecation, options.ctx.now())) throw removed(deprecation);
    const { rehearsal } = options.ctx;
    if (rehearsal !== undefined)
      throw rehearsal.createError(
        scope,
        createOwnError(rehearsal.code, definition, await options.getRawInput()),
      );
    const input = schema && parseInput(schema, await options.getRawInput());
    if (!idempotent) return resolver({ ctx: options.ctx, input, path, signal, batchIndex });
    const create = withOnce(options);
    const output = await resolver({ ctx: create.ctx, input, path, signal, batchIndex });
    create.expectOnce();
    return output;
  };
  const trace = (options: CallOptions) => {
    const { id, plan } = options.ctx.apiKey;
    return operationChannel.tracePromise(call, { operation: name, keyId: id, plan }, undefined, options);
  };
  return Object.assign(
    (options: CallOptions) => (operationChannel.hasSubscribers ? trace(options) : call(options)),
    procedure,
  );
}

function removed({ successor }: Deprecation): ApiError {
  const message = `${errorTable.operation_removed.message} Use ${successor} instead.`;
  return new ApiError('operation_removed', { message });
}

/** An error as this operation responds with it, for a rehearsal; undefined if every operation's is the same. */
function createOwnError(
  code: ErrorCode,
  { meta, inputs: [schema] }: OperationDefinition,
  rawInput: unknown,
): ApiError | undefined {
  if (code === 'operation_removed') return meta.deprecation && removed(meta.deprecation);
  if (schema === undefined) return undefined;
  if (code === 'invalid_request') {
    return findInputError(schema, Object.fromEntries(listMembers(schema).map((name) => [name, null])));
  }
  const input = schema.safeParse(rawInput);
  if (code !== 'not_found' || meta.describeMissing === undefined || !input.success) return undefined;
  return new ApiError('not_found', { message: meta.describeMissing(input.data as never) });
}

function findInputError(schema: z.ZodType, value: unknown): ApiError | undefined {
  try {
    parseInput(schema, value);
    return undefined;
  } catch (error) {
    return toApiError(error);
  }
}

/** The members of an object, and of one that has a default. */
function listMembers(schema: z.ZodType): string[] {
  if (schema instanceof z.ZodObject) return Object.keys(schema.shape);
  return schema instanceof z.ZodPrefault || schema instanceof z.ZodDefault || schema instanceof z.ZodOptional
    ? listMembers(schema.unwrap() as z.ZodType)
    : [];
}
