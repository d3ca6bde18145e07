import { initTRPC } from '@trpc/server';
import type { TRPC_ERROR_CODE_KEY, TRPC_ERROR_CODE_NUMBER } from '@trpc/server/rpc';
import { TRPC_ERROR_CODES_BY_KEY } from '@trpc/server/rpc';
import type { OpenApiMeta } from 'trpc-to-openapi';
import { type ApiError, type ErrorBody, errorTable, toApiError } from './errors.js';
import type { PetStore } from './pets/store.js';

/** What a procedure gets beside its input. */
export interface Context {
  readonly pets: PetStore;
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

const t = initTRPC
  .meta<OpenApiMeta>()
  .context<Context>()
  .create({
    isDev: false,
    errorFormatter: ({ error, path }) => toErrorShape(toApiError(error), path),
  });

export const router = t.router;

/** Where every operation starts. Over REST its input is what our bridge read, not what trpc-to-openapi puts together. */
export const procedure = t.procedure.use(({ ctx: { rest }, next }) =>
  rest === undefined ? next() : next({ getRawInput: async () => rest.input }),
);

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
