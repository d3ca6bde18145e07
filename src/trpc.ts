import { type AnyTRPCProcedure, initTRPC } from '@trpc/server';
import { TRPC_ERROR_CODES_BY_KEY } from '@trpc/server/rpc';
import type { OpenApiMeta } from 'trpc-to-openapi';
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

/** The operations as both faces call them: each ends at its removal, and none has its output checked. */
export const router: typeof t.router = (procedures) => {
  const served = Object.entries(procedures as Record<string, AnyTRPCProcedure>).map(([name, operation]) => {
    trustOutput(operation);
    return [name, endAtRemoval(operation)];
  });
  return t.router(Object.fromEntries(served));
};

/**
 * What a store returns is what its types and the database's constraints make it; the output schemas are there for the
 * document and for the types of clients. Checking a page of 20 against one would take a third of the whole request.
 */
function trustOutput({ _def }: AnyTRPCProcedure): void {
  const { middlewares } = _def as unknown as { middlewares: { readonly _type?: 'input' | 'output' }[] };
  const isOutputCheck = ({ _type }: { readonly _type?: string }) => _type === 'output';
  for (let at = middlewares.findIndex(isOutputCheck); at >= 0; at = middlewares.findIndex(isOutputCheck))
    middlewares.splice(at, 1);
}

/** An operation that was removed says so, whatever it is called with. A middleware would take as long as a small query. */
function endAtRemoval(operation: AnyTRPCProcedure): AnyTRPCProcedure {
  const { deprecation } = operation._def.meta as OperationMeta;
  if (deprecation === undefined) return operation;
  const call = (options: { readonly ctx: Context }) => {
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
