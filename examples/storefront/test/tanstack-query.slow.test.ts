import { type AppRouter, createClient, nextCursor } from '@animal-store/client';
import { dehydrate, hydrate, InfiniteQueryObserver, QueryClient } from '@tanstack/react-query';
import { createTRPCOptionsProxy } from '@trpc/tanstack-react-query';
import { expect, onTestFinished, test } from 'vitest';
import {
  create,
  type Item,
  list,
  newItem,
  TABLE,
  TEXT,
} from '../../../test/support/operations-under-test.js';
import { startService } from '../../../test/support/service.js';

async function connect() {
  const service = await startService();
  onTestFinished(() => service.close());
  const client = createClient({ baseUrl: service.url, apiKey: service.key });
  const queryClient = new QueryClient();
  onTestFinished(() => queryClient.clear());
  return { service, client, queryClient, trpc: createTRPCOptionsProxy<AppRouter>({ client, queryClient }) };
}

test('TanStack Query accepts the client', async () => {
  const { client, queryClient, trpc } = await connect();
  const items = await Promise.all(
    [{}, list.filter].map((members) => client[create.name].mutate({ ...newItem('Item'), ...members })),
  );
  expect(await queryClient.fetchQuery(trpc[list.name].queryOptions(list.filter))).toEqual([items[1]]);
});

/** A list of so many items of which two pages of five have been read */
async function readTwoPages(count: number, options: { structuralSharing?: false } = {}) {
  const { service, queryClient, trpc } = await connect();
  const ids: number[] = [];
  const add = async () => ids.push((await service.items.create(newItem('Item'))).id);
  while (ids.length < count) await add();
  const query = trpc[list.name].infiniteQueryOptions(
    { limit: 5 },
    { getNextPageParam: nextCursor, staleTime: Number.POSITIVE_INFINITY, ...options },
  );
  /** What `useInfiniteQuery` is made of */
  const observe = (cache: QueryClient) => {
    const observer = new InfiniteQueryObserver(cache, query);
    onTestFinished(observer.subscribe(() => {}));
    return observer;
  };
  const observer = observe(queryClient);
  await observer.refetch();
  await observer.fetchNextPage();
  return { service, ids, add, queryClient, query, observer, observe };
}

type Reading = Awaited<ReturnType<typeof readTwoPages>>;

/** The ids of all items, after the user has asked for more until no more followed */
async function readOn(observer: Reading['observer']) {
  while (observer.getCurrentResult().hasNextPage) await observer.fetchNextPage();
  return observer.getCurrentResult().data?.pages.flatMap((page) => page.map(({ id }) => id));
}

test.each<[string, (reading: Reading) => Promise<Reading['observer']>]>([
  [
    'has read an item again that has changed',
    async ({ service, ids, observer }) => {
      await service.database.pool.query(`UPDATE ${TABLE} SET ${TEXT} = 'Changed' WHERE id = $1`, [ids[7]]);
      await observer.refetch();
      return observer;
    },
  ],
  [
    'was given an item',
    async ({ ids, queryClient, query, observer }) => {
      const rename = (item: Item) => (item.id === ids[7] ? { ...item, [TEXT]: 'Changed' } : item);
      queryClient.setQueryData(
        query.queryKey,
        (data) => data && { ...data, pages: data.pages.map((page) => page.map(rename)) },
      );
      return observer;
    },
  ],
  [
    'was restored from JSON',
    async ({ queryClient, observe }) => {
      const restored = new QueryClient();
      onTestFinished(() => restored.clear());
      hydrate(restored, JSON.parse(JSON.stringify(dehydrate(queryClient))));
      return observe(restored);
    },
  ],
])('a cache that %s leads to every item of a list', async (_what, touch) => {
  const reading = await readTwoPages(17);
  expect(await readOn(await touch(reading))).toEqual(reading.ids);
});

test('without structural sharing, reading again shows that a list goes on after what was its end', async () => {
  const { ids, add, observer } = await readTwoPages(10, { structuralSharing: false });
  expect(observer.getCurrentResult().hasNextPage).toBe(false);
  await add();
  await observer.refetch();
  expect(await readOn(observer)).toEqual(ids);
});
