import { type AnyTRPCProcedure, initTRPC, TRPCError } from '@trpc/server';
import { TRPC_ERROR_CODES_BY_KEY } from '@trpc/server/rpc';
import type { OpenApiMeta } from 'trpc-to-openapi';
import type { z } from 'zod';
import { type Deprecation, isRemoved } from './deprecation.js';
import { ApiError, type ErrorShape, errorTable, toApiError } from './errors.js';
import type { ApiKey } from './keys/store.js';
import type { OrderStore } from './orders/store.js';
import type { PetStore } from './pets/store.js';

/** What a procedure gets beside its input. */
export interface Context extends Service, Call {}

/** What lives as long as the service. */
export interface Service {
  readonly pets: PetStore;
  readonly orders: OrderStore;
  /** Unix milliseconds */
  readonly now: () => number;
}

/** What belongs to one HTTP request, which over tRPC may hold several calls. */
export interface Call {
  /** The key that the request was admitted with */
  readonly apiKey: ApiKey;
  /** The Idempotency-Key as it was sent, and the SHA-256 of the body that it came with */
  readonly idempotency: { readonly header: string; readonly bodyHash: Uint8Array } | undefined;
  /** Notes whether a create repeated an earlier one: the response says so when all of its creates did. */
  noteCreate(isReplay: boolean): void;
  /** Present when the call came over REST: what only that face can say. */
  readonly rest?: RestCall;
}

export interface RestCall {
  /** The operation's input as the REST bridge read it, before validation. */
  readonly input: unknown;
  /** Answers 201 with a Location; the path is relative to the version, for example /pets/7. */
  created(path: string): void;
  /** Announces the page that follows the cursor. */
  nextPage(cursor: number): void;
}

/** What is declared of an operation beside its input and output. */
export interface OperationMeta extends OpenApiMeta {
  /** How far clients may rely on it: `x-stability` in the OpenAPI document */
  readonly stability: 'stable' | 'beta' | 'experimental';
  readonly deprecation?: Deprecation;
}

const t = initTRPC
  .meta<OperationMeta>()
  .context<Context>()
  .create({
    isDev: false,
    errorFormatter: ({ error, path }) => toErrorShape(toApiError(error), path),
  });

/** Where every operation starts. */
export const procedure = t.procedure;

/** The operations as both faces call them: each ends at its removal, and takes no detours on its way. */
export const router: typeof t.router = (procedures) => {
  const served = Object.entries(procedures as Record<string, AnyTRPCProcedure>).map(([name, operation]) => [
    name,
    endAtRemoval(callDirectly(operation)),
  ]);
  return t.router(Object.fromEntries(served));
};

interface CallOptions {
  readonly ctx: Context;
  readonly getRawInput: () => Promise<unknown>;
}

/** What tRPC keeps within a procedure and does not declare */
interface Internals {
  readonly inputs: readonly z.ZodType[];
  readonly middlewares: readonly { readonly _type?: 'input' | 'output' }[];
  readonly resolver: (options: object) => Promise<unknown>;
}

/**
 * A procedure with one input and no middleware of its own, called without tRPC's runner. That copies the call's options
 * eight times, which takes longer than to read the input and to answer; it makes zod parse asynchronously, which zod does
 * not compile; and it checks the output. What a store returns is what its types and the database's constraints make it:
 * the output schemas are there for the document and for the types of clients.
 */
function callDirectly(operation: AnyTRPCProcedure): AnyTRPCProcedure {
  const { inputs, middlewares, resolver } = operation._def as unknown as Internals;
  const [input, further] = inputs;
  const isPlain = middlewares.filter(({ _type }) => _type === undefined).length === 1;
  if (input === undefined || further !== undefined || !isPlain) return operation;
  const call = async (options: CallOptions) =>
    resolver({ ...options, input: parseInput(input, await options.getRawInput()) });
  return Object.assign(call, operation);
}

function parseInput(schema: z.ZodType, value: unknown): unknown {
  try {
    return schema.parse(value);
  } catch (cause) {
    throw new TRPCError({ code: 'BAD_REQUEST', cause });
  }
}

/** An operation that was removed says so, whatever it is called with. */
function endAtRemoval(operation: AnyTRPCProcedure): AnyTRPCProcedure {
  const { deprecation } = operation._def.meta as OperationMeta;
  if (deprecation === undefined) return operation;
  const call = (options: CallOptions) => {
    if (!isRemoved(deprecation, options.ctx.now())) return operation(options as never);
    throw new ApiError(
      'operation_removed',
      `This operation was removed; its successor is ${deprecation.successor}.`,
    );
  };
  return Object.assign(call, operation);
}

export function toErrorShape(error: ApiError, path?: string): ErrorShape {
  const { trpcCode } = errorTable[error.code];
  return {
    message: error.message,
    code: TRPC_ERROR_CODES_BY_KEY[trpcCode],
    data: {
      code: trpcCode,
      httpStatus: error.status,
      ...(path === undefined ? {} : { path }),
      error: error.body,
    },
  };
}
