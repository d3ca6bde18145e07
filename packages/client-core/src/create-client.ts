import { createTRPCClient, httpBatchLink, httpLink, splitLink, type TRPCClient } from '@trpc/client';
import type { inferRouterInputs, inferRouterOutputs } from '@trpc/server';
import { readReason } from './abort.js';
import type { AppRouter } from './app-router.js';
import { checkBaseUrl } from './base-url.js';
import type { ErrorCode } from './contract.js';
import { createLimitWatch, type LimitWatch } from './limit-watch.js';
import { MAX_BATCH_SIZE, TRPC_PREFIX } from './protocol.js';
import { type Clock, retryLink } from './retry.js';
import { createTransport } from './transport.js';

export { ApiClientError, isApiError } from './api-error.js';
export type { AppRouter, ErrorShape, FieldErrors, RootTypes } from './app-router.js';
export type * from './contract.js';
export type { LimitStatus, LimitWatch, WindowStatus } from './limit-watch.js';
export { items, nextCursor, pages } from './pages.js';
export type { Clock } from './retry.js';

/** The inputs of the operations, by their names */
export type Inputs = inferRouterInputs<AppRouter>;
/** What the operations return, by their names */
export type Outputs = inferRouterOutputs<AppRouter>;

/** The options of createClient */
export interface ClientOptions {
  /** The address of the service, without `/v1` or `/trpc`; the empty string is the page's own origin. */
  readonly baseUrl: string;
  /** The API key, or a function that returns it and runs before each request; undefined sends none. */
  readonly apiKey: string | (() => string | undefined);
  /** Replaces the global `fetch`. */
  readonly fetch?: typeof fetch;
  /** Limits of one call including its retries */
  readonly retry?: {
    /**
     * The most times that the call is sent; 1 turns retries off.
     *
     * @default 4
     */
    readonly attempts?: number;
    /**
     * How long the call may take, including waits
     *
     * @default 30
     */
    readonly totalSeconds?: number;
  };
  /**
   * Rehearses an error: every call fails as if the service had responded with this code, and nothing runs. Only test keys can,
   * which have `test_` after the prefix of the service's keys; others ignore it.
   */
  readonly rehearse?: ErrorCode | (() => ErrorCode | undefined);
  /** For tests: replaces all or part of the real clock. */
  readonly clock?: Partial<Clock>;
}

/**
 * The typed tRPC client of the service, with one member of its own, `limits`. To choose the Idempotency-Key of a create, pass
 * `{ context: { idempotencyKey } }` as the second argument of its `mutate`; otherwise the client generates one.
 */
export type Client = TRPCClient<AppRouter> & {
  /** The rate limits as of the latest response */
  readonly limits: LimitWatch;
};

/** RFC 9110 (section 4.1) recommends that all software support 8,000; half of that leaves room for what proxies add. */
const MAX_URL_LENGTH = 4_000;

/**
 * Creates a client that batches simultaneous queries, retries safe calls after transient failures, and rejects with an
 * ApiClientError when the service responds with an error (see isApiError). Turn off the retries of libraries such as TanStack
 * Query.
 *
 * @throws TypeError for a baseUrl that cannot be the address of a service
 */
export function createClient(options: ClientOptions): Client {
  const { baseUrl, apiKey } = options;
  const { attempts = 4, totalSeconds = 30 } = options.retry ?? {};
  const clock: Clock = { now, random: Math.random, sleep, ...options.clock };
  const { limits, update } = createLimitWatch(clock.now);
  const http = {
    url: checkBaseUrl(baseUrl) + TRPC_PREFIX,
    fetch: createTransport(options.fetch, update),
  };
  const readHeaders = () => {
    const key = typeof apiKey === 'function' ? apiKey() : apiKey;
    const code = typeof options.rehearse === 'function' ? options.rehearse() : options.rehearse;
    return {
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...(code === undefined ? {} : { prefer: `error=${code}` }),
    };
  };
  const trpc = createTRPCClient<AppRouter>({
    links: [
      retryLink({ attempts, totalSeconds, clock }),
      splitLink({
        condition: ({ type }) => type === 'mutation',
        true: httpLink({
          ...http,
          headers: ({ op }) => ({
            ...readHeaders(),
            ...(op.context.idempotencyKey === undefined
              ? {}
              : { 'idempotency-key': String(op.context.idempotencyKey) }),
          }),
        }),
        false: httpBatchLink({
          ...http,
          headers: readHeaders,
          maxItems: MAX_BATCH_SIZE,
          maxURLLength: MAX_URL_LENGTH,
        }),
      }),
    ],
  });
  // tRPC's client is a proxy that treats every member as a procedure, so it becomes the prototype of our own member.
  return Object.assign(Object.create(trpc) as typeof trpc, { limits });
}

/**
 * Unix milliseconds. Outside of pages, Next.js refuses to prerender a component that calls Date.now(). In a page,
 * performance.now() may stand still while the computer sleeps, and countdowns compare with Date.now().
 */
function now(): number {
  const hasPage = typeof document !== 'undefined';
  // React Native may have no `performance.timeOrigin`.
  return hasPage || !globalThis.performance?.timeOrigin
    ? Date.now()
    : performance.timeOrigin + performance.now();
}

function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(readReason(signal));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', abort);
      resolve();
    }, milliseconds);
    signal.addEventListener('abort', abort);
  });
}
