import type { TRPC_ERROR_CODE_KEY } from '@trpc/server/rpc';

/** A window in which requests are counted. */
export interface Window {
  readonly name: string;
  readonly lengthMs: number;
  /** The member of Limits that holds its limit */
  readonly field: string;
}

/**
 * How many requests fit into each window, by the window's `field`. A window without a number does not limit the caller. A client
 * without a key, for example, has ANONYMOUS_PER_MINUTE and no limit per day.
 */
export interface Limits {
  readonly perMinute: number;
  readonly [field: string]: number | undefined;
}

type Privilege = 'SELECT' | 'INSERT' | 'UPDATE' | 'DELETE';

/** Names, and the data that the store starts with. */
export interface Identity {
  /** Lower case with hyphens: the name of the command line and of connections to the database */
  readonly name: string;
  /** The service, as people call it */
  readonly title: string;
  /** A sentence: what callers find here */
  readonly description: string;
  /** The version of the REST interface, which is independent of the service's releases: see docs/guides/compatibility.md. */
  readonly interfaceVersion: string;
  /** The licence under which callers may use the interface. Without it, the document names none. */
  readonly license?: { readonly name: string; readonly url: string };
  /** How keys start; `live_` or `test_` follows. Issued keys contain it, so it cannot change. */
  readonly keyPrefix: string;
  /** How the names of metrics start. Dashboards and alerts contain it. */
  readonly metricsPrefix: string;
  /** Where the embedded PostgreSQL keeps its data. Existing data directories contain these names. */
  readonly embedded: { readonly database: string; readonly systemDir: string };
  /** The table that Prisma Studio opens; while it is empty, prisma/seed.sql may add the sample data. */
  readonly mainTable: string;
  /** What the service may do with the store's own tables: the least that its statements need */
  readonly grants: Readonly<Record<string, readonly Privilege[]>>;
  /** The path of the list of the rows of `mainTable`, relative to the version, for examples */
  readonly mainPath: string;
  /** The operation of that list, for examples */
  readonly mainOperation: string;
}

/** The codes that operations of any store respond with: see errors/error-table.ts. */
export type PlatformErrorCode =
  | 'invalid_request'
  | 'missing_api_key'
  | 'invalid_api_key'
  | 'insufficient_scope'
  | 'origin_not_allowed'
  | 'not_found'
  | 'method_not_allowed'
  | 'idempotency_key_in_use'
  | 'operation_removed'
  | 'payload_too_large'
  | 'unsupported_media_type'
  | 'idempotency_key_reused'
  | 'rate_limit_exceeded'
  | 'api_key_banned'
  | 'internal_error'
  | 'not_implemented'
  | 'service_unavailable';

/** The error of a code that is the store's own: only operations that name a code respond with it. */
export interface StoreError {
  readonly status: number;
  /** The closest of tRPC's own codes. */
  readonly trpcCode: TRPC_ERROR_CODE_KEY;
  /** Sent to the client unless the error is given a more specific message. */
  readonly message: string;
  /** Sent with the error unless it is given other headers. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Explains the code in the OpenAPI document; starts in lower case and has no full stop. */
  readonly description: string;
  /** The document's examples of a message, where `message` alone is not typical. */
  readonly examples?: readonly [string, ...string[]];
  /** Follows the message and tells a language model what to do. */
  readonly advice?: string;
}

/** By their codes, none of which may be the platform's */
type StoreErrors = Readonly<Record<string, StoreError>> & {
  readonly [Code in PlatformErrorCode]?: never;
};

/** What every client of Prisma's has, whatever its schema */
export interface AnyPrisma {
  $queryRaw<Rows = unknown>(sql: TemplateStringsArray, ...values: unknown[]): Promise<Rows>;
  $queryRawUnsafe<Rows = unknown>(sql: string, ...values: unknown[]): Promise<Rows>;
  $executeRaw(sql: TemplateStringsArray, ...values: unknown[]): Promise<number>;
  $executeRawUnsafe(sql: string, ...values: unknown[]): Promise<number>;
}

/** What Prisma generates for a store: a class of its own for each schema */
export interface PrismaModule<Client = AnyPrisma> {
  readonly PrismaClient: new (options: never) => Client;
}

/** What a store is called, sells and allows. The platform knows a store by this value, and by its resources. */
export interface Definition {
  /** The folder of package.json, prisma/ and dist/ */
  readonly root: URL;
  readonly identity: Identity;
  /** The windows in which requests are counted, the shortest first. The first has to be the minute: see docs/your-own.md. */
  readonly windows: readonly [Window, ...Window[]];
  /** The limits of each plan; undefined where every key has its own */
  readonly plans: Readonly<Record<string, Limits | undefined>>;
  /** Its limits apply to a key that lacks limits of its own, which the database does not allow. */
  readonly fallbackPlan: string;
  /** The plan of the key that a start on the embedded database prints. */
  readonly developmentPlan: string;
  /** What keys can allow. */
  readonly scopes: readonly [string, ...string[]];
  /** The scopes of a key that is issued without naming any. Without this member they are all. */
  readonly defaultScopes?: readonly [string, ...string[]];
  /** The error codes of the store's own operations, besides the codes that every operation may respond with. */
  readonly errors: StoreErrors;
  /** Loads what `prisma generate` has written: `() => import('./generated/client.js')` */
  readonly loadPrisma: () => Promise<PrismaModule>;
}

export type PlanOf<Of extends Definition> = Extract<keyof Of['plans'], string>;
export type ScopeOf<Of extends Definition> = Of['scopes'][number];
export type WindowOf<Of extends Definition> = Of['windows'][number]['name'];
export type CodeOf<Of extends Definition> = Extract<keyof Of['errors'], string>;
