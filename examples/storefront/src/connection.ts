import { type AppRouter, type Client, createClient, type ErrorCode } from '@animal-store/client';
import { QueryCache, QueryClient } from '@tanstack/react-query';
import { createTRPCContext } from '@trpc/tanstack-react-query';

export const { TRPCProvider, useTRPC, useTRPCClient } = createTRPCContext<AppRouter>();

/** Retries only briefly: the page then says what is wrong, counts down, and retries itself. */
export function createStoreClient(apiKey: string, rehearse: () => ErrorCode | undefined): Client {
  const retry = { attempts: 3, totalSeconds: 10 };
  return createClient({ baseUrl: location.origin, apiKey, rehearse, retry });
}

/** @param onQueryError also gets whether a query has succeeded before */
export function createQueryClient(onQueryError: (error: unknown, hasWorked: boolean) => void): QueryClient {
  let hasWorked = false;
  return new QueryClient({
    queryCache: new QueryCache({
      onSuccess: () => {
        hasWorked = true;
      },
      onError: (error) => onQueryError(error, hasWorked),
    }),
    defaultOptions: {
      // The client retries, and treats being offline like any other way of not reaching the service.
      // Cached pages are not fetched again, because every fetch counts towards the limit.
      queries: { retry: false, networkMode: 'always', staleTime: Number.POSITIVE_INFINITY },
      mutations: { retry: false, networkMode: 'always' },
    },
  });
}
