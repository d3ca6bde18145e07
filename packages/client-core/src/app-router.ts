import type { AnyTRPCRouter } from '@trpc/server';
import type { TRPC_ERROR_CODE_KEY, TRPC_ERROR_CODE_NUMBER } from '@trpc/server/rpc';
import type { ErrorBody, Operations, Scope } from './contract.js';

type RouterDefinition = AnyTRPCRouter['_def'];

/**
 * The service's router as clients see it, without its context and metadata. It is composed here because the oldest
 * version of tRPC that the client works with exports no type for it.
 */
export interface AppRouter {
  /** For servers only; clients do not call it. */
  readonly createCaller: AnyTRPCRouter['createCaller'];
  /** What tRPC's clients infer their types from */
  readonly _def: Omit<RouterDefinition, '_config' | 'procedures' | 'record'> & {
    readonly _config: Omit<RouterDefinition['_config'], '$types'> & { readonly $types: RootTypes };
    readonly procedures: Operations;
    readonly record: Operations;
  };
}

/** What is the same for all operations, as tRPC's clients infer it */
export interface RootTypes {
  /** Known to the service alone */
  ctx: object;
  /** Known to the service alone */
  meta: object;
  /** The shape of each error over tRPC */
  errorShape: ErrorShape;
  /** None: inputs and outputs are plain JSON */
  transformer: false;
}

/** What is wrong with each invalid field, by its name: `{ name: 'is required' }` */
export type FieldErrors = Readonly<Record<string, string>>;

/** tRPC's error shape with the service's error body in it */
export interface ErrorShape {
  /** For people, as in the body */
  message: string;
  /** JSON-RPC's number for the kind of error */
  code: TRPC_ERROR_CODE_NUMBER;
  /** What tRPC and the service add */
  data: {
    /** The closest of tRPC's own codes */
    code: TRPC_ERROR_CODE_KEY;
    /** The HTTP status of the response to a single call */
    httpStatus: number;
    /** The name of the operation, where it is known */
    path?: string;
    /** The body that REST would send */
    error: ErrorBody;
    /** With `invalid_request`, if the error is about fields */
    fields?: FieldErrors;
    /** With `insufficient_scope`: the scope that the key lacks */
    scope?: Scope;
  };
}
