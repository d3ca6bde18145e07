import { type AppRouter, createClient } from '@animal-store/client';
import { QueryClient } from '@tanstack/react-query';
import { createTRPCOptionsProxy } from '@trpc/tanstack-react-query';
import { expect, onTestFinished, test } from 'vitest';
import { create, list, newItem } from '../../../test/support/operations-under-test.js';
import { startService } from '../../../test/support/test-service.js';

test('TanStack Query accepts the client', async () => {
  const service = await startService();
  onTestFinished(() => service.close());
  const client = createClient({ baseUrl: service.url, apiKey: service.key });
  const items = await Promise.all(
    [{}, list.filter].map((members) => client[create.name].mutate({ ...newItem('Item'), ...members })),
  );
  const queryClient = new QueryClient();
  const trpc = createTRPCOptionsProxy<AppRouter>({ client, queryClient });
  expect(await queryClient.fetchQuery(trpc[list.name].queryOptions(list.filter))).toEqual([items[1]]);
  queryClient.clear();
});
