import { initTRPC } from '@trpc/server';
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

export const router = t.router;

/**
 * Where every operation starts, and where a removed one ends. Over REST its input is what our bridge read, not what
 * trpc-to-openapi puts together.
 */
export const procedure = t.procedure.use(({ ctx: { rest, now }, meta, next }) => {
  if (meta?.deprecation !== undefined && isRemoved(meta.deprecation, now())) {
    throw new ApiError(
      'operation_removed',
      `This operation was removed; its successor is ${meta.deprecation.successor}.`,
    );
  }
  return rest === undefined ? next() : next({ getRawInput: async () => rest.input });
});

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
