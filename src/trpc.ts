import { initTRPC } from '@trpc/server';
import type { TRPC_ERROR_CODE_KEY, TRPC_ERROR_CODE_NUMBER } from '@trpc/server/rpc';
import { TRPC_ERROR_CODES_BY_KEY } from '@trpc/server/rpc';
import type { OpenApiMeta } from 'trpc-to-openapi';
import { type Deprecation, isRemoved } from './deprecation.js';
import { ApiError, type ErrorBody, errorTable, toApiError } from './errors.js';
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

/**
 * tRPC's router, without the checks of its outputs: what a store returns is what the database's constraints and its types
 * make it, and the output schemas are there for the document and for the types. A page of 20 is a third cheaper for it.
 */
export const router: typeof t.router = (procedures) => {
  for (const { _def } of Object.values(procedures) as unknown as { _def: { middlewares: Middleware[] } }[])
    _def.middlewares = _def.middlewares.filter(({ _type }) => _type !== 'output');
  return t.router(procedures);
};

/** As tRPC keeps them within a procedure */
type Middleware = { readonly _type?: 'input' | 'output' };

/** Where every operation starts. */
export const procedure = t.procedure;

/** What an operation that is deprecated starts with beside: it ends at its removal. */
export const untilRemoval = t.middleware(({ ctx: { now }, meta, next }) => {
  if (meta?.deprecation === undefined || !isRemoved(meta.deprecation, now())) return next();
  throw new ApiError(
    'operation_removed',
    `This operation was removed; its successor is ${meta.deprecation.successor}.`,
  );
});

/** tRPC's error shape, with the Error object of the REST face under `data.error`. */
export interface ErrorShape {
  message: string;
  code: TRPC_ERROR_CODE_NUMBER;
  data: { code: TRPC_ERROR_CODE_KEY; httpStatus: number; path?: string; error: ErrorBody };
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
