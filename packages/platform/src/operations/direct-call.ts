import { tracingChannel } from 'node:diagnostics_channel';
import { inspect, types } from 'node:util';
import { type AnyTRPCProcedure, TRPCError, type TRPCProcedureType } from '@trpc/server';
import { z } from 'zod';
import { type Deprecation, isRemoved } from '../contract/deprecation.js';
import { ApiError } from '../errors/api-error.js';
import { platformErrors } from '../errors/error-table.js';
import { findScopeError } from '../keys/authenticator.js';
import type { RequestContext } from './builder.js';
import { findDefinitionError, hasMiddleware, type OperationDefinition } from './definition.js';
import { withOnce } from './idempotency-key.js';
import { INPUT_ERROR } from './input.js';
import { outageMessage, withOutageMessage } from './outage.js';

/** What an operation without an input takes: nothing, or an object, whose members are unknown and thus ignored. */
const NO_INPUT = z.looseObject({}, { error: INPUT_ERROR }).optional();

/** Traces each call of an operation, of which a batch has several. Nothing is published without subscribers. */
const operationChannel = tracingChannel<unknown, OperationCall>('animal-store.operation');

interface OperationCall {
  readonly operation: string;
  /** The id and the plan of the key that calls */
  readonly keyId: string;
  readonly plan: string;
}

interface CallOptions {
  readonly ctx: RequestContext;
  readonly path: string;
  readonly type: TRPCProcedureType;
  readonly signal: AbortSignal | undefined;
  readonly batchIndex: number;
  readonly getRawInput: () => Promise<unknown>;
}

/**
 * Returns a procedure that takes the same arguments, but runs without tRPC's middleware runner unless it has a `.use()`.
 *
 * The runner copies the call's options eight times, parses the input asynchronously, for which zod has no compiled path, and
 * validates the output. Together that takes longer than parsing the input and responding. Outputs need no validation, because
 * the stores' types and the database's constraints guarantee them. Output schemas are for the document and the clients' types.
 *
 * @throws TypeError when the procedure lacks what an operation must declare, or has what the protocols cannot serve
 */
export function toOperation(name: string, procedure: AnyTRPCProcedure): AnyTRPCProcedure {
  // A value of the type `any` may not be a procedure.
  const definition = (procedure._def ?? {}) as unknown as OperationDefinition;
  const definitionError = findDefinitionError(definition);
  if (definitionError !== undefined)
    throw new TypeError(`${name} cannot be an operation: ${definitionError}`);
  const { inputs, resolver, meta } = definition;
  const [schema] = inputs;
  const { scope, deprecation, idempotent = false } = meta;
  const needsRunner = hasMiddleware(definition);
  const call = async (options: CallOptions) => {
    const { path, signal, batchIndex } = options;
    const scopeError = findScopeError(options.ctx.apiKey, scope);
    if (scopeError !== undefined) throw scopeError;
    if (deprecation !== undefined && isRemoved(deprecation, options.ctx.now())) throw removed(deprecation);
    // Read for the runner, too. This may refuse a tool's arguments, which has to precede the check of its Idempotency-Key,
    // and a body that is not JSON, which has to precede a rehearsed error.
    const rawInput = await options.getRawInput();
    const { rehearsal } = options.ctx;
    if (rehearsal !== undefined) throw rehearsal.createError(scope);
    if (schema === undefined) parseInput(NO_INPUT, rawInput);
    const input = schema && !needsRunner ? parseInput(schema, rawInput) : undefined;
    const create = idempotent ? withOnce(options) : undefined;
    const { ctx } = create ?? options;
    const output = await (needsRunner
      ? runWithMiddleware(procedure, { ...options, ctx })
      : resolver({ ctx, input, path, signal, batchIndex }));
    create?.expectOnce();
    return output;
  };
  const trace = (options: CallOptions) => {
    const { id, plan } = options.ctx.apiKey;
    return operationChannel.tracePromise(call, { operation: name, keyId: id, plan }, undefined, options);
  };
  const message = outageMessage(meta);
  const run = (options: CallOptions) =>
    (operationChannel.hasSubscribers ? trace(options) : call(options)).catch((error: unknown) => {
      throw withOutageMessage(toError(error), message);
    });
  return Object.assign(run, procedure);
}

/**
 * The parsed input of an operation.
 *
 * @throws TRPCError BAD_REQUEST, whose cause is a ZodError
 */
export function parseInput(schema: z.ZodType, value: unknown): unknown {
  try {
    return schema.parse(value);
  } catch (cause) {
    throw new TRPCError({ code: 'BAD_REQUEST', cause });
  }
}

/** A handler may throw anything, and null has no reason that the log could show. */
function toError(thrown: unknown): Error {
  if (thrown instanceof Error || types.isNativeError(thrown)) return thrown;
  return new TypeError(
    `A handler threw what is no Error: ${inspect(thrown, { depth: 1, maxStringLength: 200 })}`,
  );
}

/** Runs a procedure as tRPC documents. */
function runWithMiddleware(procedure: AnyTRPCProcedure, options: CallOptions): Promise<unknown> {
  const { ctx } = options;
  // `next({ ctx })` spreads the context, which would lose the stores, because those are inherited.
  return procedure({ ...options, ctx: { ...Object.getPrototypeOf(ctx), ...ctx } });
}

function removed({ successor }: Deprecation): ApiError {
  const message = `${platformErrors.operation_removed.message} Use ${successor} instead.`;
  return new ApiError('operation_removed', { message });
}
