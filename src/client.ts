import { createTRPCClient, httpBatchLink, type TRPCClient } from '@trpc/client';
import type { inferRouterInputs, inferRouterOutputs } from '@trpc/server';
import type { LimitWatch } from './client/limits.js';
import type { AppRouter } from './router.js';

export { ApiClientError, isApiError } from './client/errors.js';
export type { LimitState, LimitWatch, WindowState } from './client/limits.js';
export type { ErrorCode } from './errors.js';
export type { AppRouter } from './router.js';

export type Inputs = inferRouterInputs<AppRouter>;
export type Outputs = inferRouterOutputs<AppRouter>;
export type NewPet = Inputs['createPet'];
export type Pet = Outputs['createPet'];
export type PetStatus = Pet['status'];
export type Order = Outputs['listOrders'][number];
/** What listAllPets takes: everything that listPets does but the place to start from */
export type PetFilter = Omit<NonNullable<Inputs['listPets']>, 'cursor'>;

export interface ClientOptions {
  /** Where the service is, without `/v1` or `/trpc`; the empty string is the page's own origin. */
  readonly baseUrl: string;
  /** The API key, or what to ask for it before each request */
  readonly apiKey: string | (() => string | undefined);
  readonly fetch?: typeof fetch;
  /** Bounds of one call with all its repetitions: 4 attempts and 30 seconds, unless given */
  readonly retry?: { readonly attempts?: number; readonly totalSeconds?: number };
}

export type Client = TRPCClient<AppRouter> & {
  /** Every page of animals in turn. */
  listAllPets(filter?: PetFilter, options?: { signal?: AbortSignal }): AsyncGenerator<Pet[], void, undefined>;
  /** The limit state that the last answer told, for gauges */
  readonly limits: LimitWatch;
};

export function createClient(options: ClientOptions): Client {
  const trpc = createTRPCClient<AppRouter>({
    links: [
      httpBatchLink({
        url: `${options.baseUrl.replace(/\/+$/, '')}/trpc`,
        maxItems: 20,
        fetch: (url, init) => (options.fetch ?? fetch)(url as string, init as RequestInit),
        headers: () => {
          const key = typeof options.apiKey === 'function' ? options.apiKey() : options.apiKey;
          return key === undefined ? {} : { authorization: `Bearer ${key}` };
        },
      }),
    ],
  });
  return Object.assign(Object.create(trpc) as typeof trpc, {
    async *listAllPets(filter: PetFilter = {}, { signal }: { signal?: AbortSignal } = {}) {
      for (let cursor: number | undefined; ; ) {
        const page = await trpc.listPets.query({ ...filter, cursor }, signal === undefined ? {} : { signal });
        if (page.length > 0) yield page;
        cursor = page.at(-1)?.id;
        if (cursor === undefined) return;
      }
    },
    limits: { current: undefined, subscribe: () => () => {} },
  });
}
