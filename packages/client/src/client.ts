import { createTRPCClient, httpBatchLink, httpLink, splitLink, type TRPCClient } from '@trpc/client';
import type { inferRouterInputs, inferRouterOutputs } from '@trpc/server';
import { MAX_BATCH_SIZE, MAX_PAGE_SIZE } from '../../../src/protocol.js';
import type { AppRouter } from '../../../src/router.js';
import { type LimitWatch, watchLimits } from './limit-watch.js';
import { type Clock, retryLink } from './retry.js';
import { createTransport } from './transport.js';

export type { ErrorCode } from '../../../src/errors.js';
export type { AppRouter } from '../../../src/router.js';
export { ApiClientError, isApiError } from './api-error.js';
export type { LimitState, LimitWatch, WindowState } from './limit-watch.js';
export type { Clock } from './retry.js';

export type Inputs = inferRouterInputs<AppRouter>;
export type Outputs = inferRouterOutputs<AppRouter>;
export type NewPet = Inputs['createPet'];
export type Pet = Outputs['createPet'];
export type PetStatus = Pet['status'];
export type Order = Outputs['listOrders'][number];
/** What listPets takes, but for the place to start from */
export type PetFilter = Omit<Extract<Inputs['listPets'], object>, 'cursor'>;

export interface ClientOptions {
  /** Where the service is, without `/v1` or `/trpc`; the empty string is the page's own origin. */
  readonly baseUrl: string;
  /** The API key, or what to ask for it before each request; undefined sends none. */
  readonly apiKey: string | (() => string | undefined);
  readonly fetch?: typeof fetch;
  /** The bounds of one call with all its repetitions: by default 4 attempts in 30 seconds. One attempt repeats nothing. */
  readonly retry?: { readonly attempts?: number; readonly totalSeconds?: number };
  /** For tests; what is given replaces the real one. */
  readonly clock?: Partial<Clock>;
}

/**
 * The typed tRPC client of the service, with two members more. A create takes an Idempotency-Key of the caller's as
 * `createPet.mutate(pet, { context: { idempotencyKey } })`, and otherwise makes one for itself.
 */
export type Client = TRPCClient<AppRouter> & {
  /** Every page of animals in turn, and none that is empty: of the largest size unless a limit is given. */
  listAllPets(filter?: PetFilter, options?: { signal?: AbortSignal }): AsyncGenerator<Pet[], void, undefined>;
  /** The limit state that the last answer told, for gauges */
  readonly limits: LimitWatch;
};

/** RFC 9110 (section 4.1) asks everyone to take 8,000; half of that leaves room for what proxies add. */
const MAX_URL_LENGTH = 4_000;

/**
 * A client that batches what is asked for at the same time, repeats what fails in passing, and rejects with an
 * ApiClientError where the service answered with an error: see isApiError. Libraries that repeat by themselves, as
 * TanStack Query does, are best told not to.
 */
export function createClient(options: ClientOptions): Client {
  const { baseUrl, apiKey } = options;
  const { attempts = 4, totalSeconds = 30 } = options.retry ?? {};
  const clock: Clock = { now: Date.now, random: Math.random, sleep, ...options.clock };
  const { watch, note } = watchLimits(clock.now);
  const http = {
    url: `${baseUrl.replace(/\/+$/, '')}/trpc`,
    fetch: createTransport(() => options.fetch ?? fetch, note),
  };
  const authorization = () => {
    const key = typeof apiKey === 'function' ? apiKey() : apiKey;
    return key === undefined ? {} : { authorization: `Bearer ${key}` };
  };
  const trpc = createTRPCClient<AppRouter>({
    links: [
      retryLink({ attempts, totalSeconds, clock }),
      splitLink({
        condition: ({ type }) => type === 'mutation',
        true: httpLink({
          ...http,
          headers: ({ op }) => ({
            ...authorization(),
            'idempotency-key': String(op.context.idempotencyKey),
          }),
        }),
        false: httpBatchLink({
          ...http,
          headers: authorization,
          maxItems: MAX_BATCH_SIZE,
          maxURLLength: MAX_URL_LENGTH,
        }),
      }),
    ],
  });
  const listAllPets: Client['listAllPets'] = (filter, { signal } = {}) => listPages(trpc, filter, signal);
  // tRPC's client is a proxy that knows no members: what it is to have of its own stands before it.
  return Object.assign(Object.create(trpc) as typeof trpc, { listAllPets, limits: watch });
}

async function* listPages(
  { listPets }: TRPCClient<AppRouter>,
  { limit = MAX_PAGE_SIZE, ...filter }: PetFilter = {},
  signal?: AbortSignal,
): AsyncGenerator<Pet[], void, undefined> {
  const options = signal === undefined ? {} : { signal };
  let cursor: number | undefined;
  do {
    const page = await listPets.query({ ...filter, limit, cursor }, options);
    if (page.length > 0) yield page;
    cursor = page.length < limit ? undefined : page.at(-1)?.id;
  } while (cursor !== undefined);
}

function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, milliseconds);
    signal.addEventListener('abort', stop);
  });
}
