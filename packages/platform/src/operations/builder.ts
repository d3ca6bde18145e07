import { initTRPC, type TRPCError } from '@trpc/server';
import { TRPC_ERROR_CODES_BY_KEY } from '@trpc/server/rpc';
import type { Deprecation } from '../contract/deprecation.js';
import type { LimitsPer } from '../contract/plans.js';
import type { ApiError, ErrorShape } from '../errors/api-error.js';
import type { Rehearsal } from '../errors/rehearsal.js';
import type { ApiKey } from '../keys/api-key.js';
import type { CreateResult, IdempotencyKey } from '../tables/idempotency.js';
import { toApiError } from './error-mapping.js';

/** The context of a procedure, to which createProcedure adds the stores. */
export interface RequestContext<Plan extends string = string, WindowName extends string = string> {
  /** The key that the request was admitted with. */
  readonly apiKey: ApiKey<Plan>;
  /**
   * What is left of the key's limits after the request, in its windows. A query that reads it declares `waitsForLimit`. Others
   * begin before it is known, and get a TypeError.
   */
  readonly limits: readonly KeyLimit<WindowName>[];
  /** `owner`: if the key has an owner, `limits` are those of all the owner's keys together. */
  readonly limitsPer: LimitsPer;
  /** Until when the key is banned, in Unix milliseconds; undefined if it is not. */
  readonly bannedUntil: number | undefined;
  /**
   * Revokes a key by its id, and both keys of a rotation with it. This process rejects it at once, others when their
   * KEY_TTL_MS ends.
   */
  readonly revokeKey: (id: string) => Promise<void>;
  /** The names of the deprecated operations. */
  readonly deprecated: ReadonlySet<string>;
  /** Unix milliseconds. */
  readonly now: () => number;
  /** The Idempotency-Key of the request, which several calls of a tRPC batch share. */
  readonly idempotency: IdempotencyHeader | undefined;
  /**
   * Runs a create and returns its output. Operations that are declared `idempotent` have to call this. `create` passes
   * the key of the call, undefined without an Idempotency-Key, to a function of createInsert or createTransactions.
   */
  once<Output>(create: (key: IdempotencyKey | undefined) => Promise<CreateResult<Output>>): Promise<Output>;
  /** The error that every call of the request responds with. */
  readonly rehearsal: Rehearsal | undefined;
  /** Announces the page after `cursor`; undefined where a protocol cannot. */
  readonly linkNextPage: ((cursor: number) => void) | undefined;
}

/** The Idempotency-Key of a request, which several calls of a tRPC batch share. */
export interface IdempotencyHeader {
  readonly value: string;
  /** SHA-256 of what a repetition has to repeat: see hashRepeated. */
  readonly bodyHash: Uint8Array;
  /** Every call reports whether it was a replay. The response has Idempotency-Replayed if all of its calls were. */
  setReplayed(isReplay: boolean): void;
}

export interface KeyLimit<WindowName extends string = string> {
  readonly name: WindowName;
  readonly limit: number;
  readonly remaining: number;
  /** Unix milliseconds. */
  readonly resetAtMs: number;
}

/**
 * A request for this operation alone costs the key nothing, and is admitted while the key is over its limit or banned.
 * `windowed`: a key has as many of these per minute as an address without a key has requests. `always`: nothing limits
 * them, so that a thief of the key cannot keep its owner from calling.
 */
export type FreeForKey = 'windowed' | 'always';

/** What a request asks for, as its URL or headers say, or its body where the protocol names it nowhere else. */
export interface RequestTarget {
  /** The names of the operations called: none, one, or one for each call of a batch. */
  readonly calls: readonly string[];
  /** How many requests the target counts as. */
  readonly cost: number;
  readonly freeForKey?: FreeForKey | undefined;
  /** The scope needed; undefined for a batch, each of whose calls needs its own. */
  readonly scope?: string | undefined;
  /** The deprecation of the operation, or of the first deprecated one in a batch. */
  readonly deprecation?: Deprecation | undefined;
  /** The methods of the path, as in Allow. */
  readonly listAllowed?: () => readonly string[];
  /** Whether the operation takes nothing from a body, so that a request may come without one. */
  readonly mayLackBody?: boolean | undefined;
  /** Whether all calls may begin before the request is admitted: see Operation. */
  readonly mayBegin?: boolean | undefined;
  /** Why the request cannot be served: 404 or 405. */
  readonly error?: ApiError | undefined;
}

/** What a tool says beyond its operation. The hints are those of the Model Context Protocol. */
interface ToolMeta {
  /** For models, which see neither headers nor addresses. Default: the operation's, without "Experimental: …" */
  readonly description?: string;
  /** Whether a call may overwrite or delete something. Default: true, unless the operation is a GET or declares a 201 */
  readonly destructiveHint?: boolean;
  /** Whether a repetition with the same arguments changes nothing further. Default: false for POST and PATCH */
  readonly idempotentHint?: boolean;
}

/** Everything that an operation declares besides its input and output. */
export interface OperationMeta<Scope extends string = string, Code extends string = string> {
  /** Read by trpc-to-openapi. */
  readonly openapi: {
    /** GET is for queries, the other methods are for mutations. */
    readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
    /** Relative to the version: /pets/{petId}. Parameters are members of the input. */
    readonly path: `/${string}`;
    readonly summary: string;
    /** Default: the summary. */
    readonly description?: string;
    readonly successDescription?: string;
  };
  /** How far clients may rely on the operation: `x-stability` in the OpenAPI document. */
  readonly stability: 'stable' | 'beta' | 'experimental';
  /** The scope that a key needs to call the operation; `any` if every valid key may call it. */
  readonly scope: Scope | 'any';
  readonly freeForKey?: FreeForKey;
  /** Whether a query runs only once its limit is decided, because it reads `ctx.limits`, or does more than read */
  readonly waitsForLimit?: boolean;
  readonly deprecation?: Deprecation;
  /** How many requests a call counts as; more than the default of 1 for much more work than other calls, such as an export. */
  readonly cost?: number;
  /** The error codes of this operation, besides those that every operation responds with. */
  readonly errors?: readonly Code[];
  /** Over REST, success is 200, or 204 for `.output(z.void())`, unless a 201 is declared here. */
  readonly success?: {
    readonly status: 201;
    /** The new resource's path relative to the version, such as /pets/7, for Location: left out if it cannot be read */
    readonly location?: (output: never) => string;
  };
  /** Whether the operation takes an Idempotency-Key. Without one, clients cannot safely repeat an operation that adds rows. */
  readonly idempotent?: boolean;
  /**
   * `false`: assistants do not get the operation as a tool. A language model may take any text that it reads for an
   * instruction, even the name of an animal, so this is for operations that cannot be undone. An object overrides what the tool
   * says, for example that a PATCH is idempotent. Default: a tool
   */
  readonly tool?: false | ToolMeta;
}

const config = {
  isDev: false,
  errorFormatter: ({ error, path }: { readonly error: TRPCError; readonly path: string | undefined }) =>
    toErrorShape(toApiError(error), path),
};

/**
 * tRPC's procedure builder, for the operations of a resource.
 *
 * With a `.use()`, calls run through tRPC's own runner, which also checks outputs. A page of 20 then takes about 65 µs of
 * CPU instead of 5, without the database. A function that several handlers call costs nothing.
 *
 * Its type parameters are the names of a store, and not its definition, because TypeScript shows them in its messages.
 */
export function createProcedure<
  Stores extends object = object,
  Scope extends string = string,
  Code extends string = string,
  Plan extends string = string,
  WindowName extends string = string,
>() {
  return initTRPC
    .meta<OperationMeta<Scope, Code>>()
    .context<RequestContext<Plan, WindowName> & Stores>()
    .create(config).procedure;
}

/** tRPC's router builder, with the service's error shape. */
export const { router } = initTRPC.create(config);

export function toErrorShape(error: ApiError, path?: string): ErrorShape {
  const { trpcCode } = error.definition;
  return {
    message: error.message,
    code: TRPC_ERROR_CODES_BY_KEY[trpcCode],
    data: {
      code: trpcCode,
      httpStatus: error.status,
      ...(path === undefined ? {} : { path }),
      error: error.body,
      ...(error.fields === undefined ? {} : { fields: error.fields }),
      ...(error.scope === undefined ? {} : { scope: error.scope }),
    },
  };
}
