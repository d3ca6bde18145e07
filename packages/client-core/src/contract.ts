import type { AnyTRPCMutationProcedure, AnyTRPCQueryProcedure } from '@trpc/server';

/*
 * Stands for the contract of a store, of which this package knows nothing: in a packed client, its place is taken by the types
 * of the store's operations, their inputs and outputs.
 */

/** What an API key can allow */
export type Scope = string;

/** Names what went wrong. */
export type ErrorCode = string;

/** The body of every response with a status of 400 or more */
export type ErrorBody = { code: ErrorCode; message: string; status: number };

/** The operations of the service as tRPC's procedures */
export type Operations = Record<string, AnyTRPCQueryProcedure | AnyTRPCMutationProcedure>;
