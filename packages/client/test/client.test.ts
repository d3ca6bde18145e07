import {
  type AppRouter,
  type ClientOptions,
  createClient,
  type Inputs,
  type Outputs,
} from '@animal-store/client';
import type { inferRouterError, inferRouterInputs, inferRouterOutputs } from '@trpc/server';
import { beforeAll, expect, expectTypeOf, test } from 'vitest';
import type { z } from 'zod';
import type { AppRouter as ServiceRouter } from '../../../src/router.js';
import { createFakeClock, interceptFetch, respondAsProxy } from '../../../test/support/intercepted-fetch.js';
import {
  create,
  type Item,
  type itemSchema,
  list,
  newItem,
  type newItemSchema,
  read,
} from '../../../test/support/operations-under-test.js';
import { useService } from '../../platform/test/support/test-service.js';

let items: Item[];

const { service } = useService();

beforeAll(async () => {
  const { client } = connect();
  items = [];
  for (const members of [{}, list.filter, {}, {}, {}]) {
    items.push(await client[create.name].mutate({ ...newItem(`Item ${items.length}`), ...members }));
  }
});

function connect(options: Partial<ClientOptions> = {}) {
  const { fetch, sent } = interceptFetch();
  const client = createClient({ baseUrl: service.url, apiKey: service.key, fetch, ...options });
  return { client, sent };
}

/** What tRPC makes of an output of `void`, `never`, would say that a call does not return. */
type ServiceOutputs = {
  [Name in keyof inferRouterOutputs<ServiceRouter>]: [inferRouterOutputs<ServiceRouter>[Name]] extends [never]
    ? undefined
    : inferRouterOutputs<ServiceRouter>[Name];
};

test("the client has the service's own types", () => {
  const { client } = connect();
  expectTypeOf<Inputs>().toEqualTypeOf<inferRouterInputs<ServiceRouter>>();
  expectTypeOf<Outputs>().toEqualTypeOf<ServiceOutputs>();
  expectTypeOf<inferRouterError<ServiceRouter>>().toExtend<inferRouterError<AppRouter>>();
  expectTypeOf<inferRouterError<AppRouter>>().toExtend<inferRouterError<ServiceRouter>>();
  expectTypeOf(client[create.name].mutate).parameter(0).toEqualTypeOf<z.input<typeof newItemSchema>>();
  expectTypeOf(client[create.name].mutate).returns.resolves.toEqualTypeOf<z.output<typeof itemSchema>>();
});

test('a base URL may end in slashes, and have a path', async () => {
  const { client, sent } = connect({ baseUrl: `${service.url}//` });
  await client[list.name].query();
  expect(new URL(sent[0]?.url ?? '').pathname).toBe(list.trpc);
});

test('fifty simultaneous calls are sent in batches of twenty, and each gets its own result', async () => {
  const { client, sent } = connect();
  const expected = Array.from({ length: 50 }, (_, index) => items[index % items.length] as Item);
  expect(await Promise.all(expected.map(({ id }) => client[read.name].query(read.inputOf(id))))).toEqual(
    expected,
  );
  const sizes = sent.map(({ url }) => new URL(url).pathname.split(',').length);
  expect(sizes).toEqual([20, 20, 10]);
});

test('a batch is split before its URL grows too long', async () => {
  const { client, sent } = connect();
  const filter = { [list.filterName]: 'x'.repeat(1_500) } as object;
  await Promise.allSettled([1, 2, 3, 4].map((limit) => client[list.name].query({ ...filter, limit })));
  expect(sent).toHaveLength(2);
  for (const { url } of sent) expect(url.length).toBeLessThanOrEqual(4_000);
});

test('a key function runs before each request, and no key is sent when it returns none', async () => {
  const keys = [service.key, undefined];
  const { client, sent } = connect({ apiKey: () => keys[sent.length] });
  await client[list.name].query();
  const failure = await client[list.name].query().catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: 'missing_api_key', status: 401 });
  expect(sent.map(({ headers }) => headers.get('authorization'))).toEqual([`Bearer ${service.key}`, null]);
});

test('the client keeps the latest limit status and notifies its listeners', async () => {
  const { key } = await service.keys.create({
    name: 'gauge',
    plan: 'free',
    perMinute: null,
    perDay: null,
    expiresAt: null,
  });
  const { clock } = createFakeClock();
  const { client } = connect({ apiKey: key, clock });
  const seen: (number | undefined)[] = [];
  const unsubscribe = client.limits.subscribe(() => seen.push(client.limits.current?.remaining));
  expect(client.limits.current).toBeUndefined();
  await client[list.name].query();
  const now = clock.now?.() ?? 0;
  const minute = { name: 'minute', limit: 60, remaining: 59, windowSeconds: 60, resetAtMs: now + 60_000 };
  const day = {
    name: 'day',
    limit: 1_000,
    remaining: 999,
    windowSeconds: 86_400,
    resetAtMs: now + 86_400_000,
  };
  expect(client.limits.current).toEqual({ ...minute, windows: [minute, day] });
  await client[read.name].query(read.inputOf(0)).catch(() => {});
  unsubscribe();
  await client[list.name].query();
  expect(seen).toEqual([59, 58]);
  expect(client.limits.current?.remaining).toBe(57);
});

test('a response that is not from the service leaves the limit status as it was', async () => {
  const { fetch } = interceptFetch((send) => send(), respondAsProxy(404));
  const { client } = connect({ fetch });
  await client[list.name].query();
  const { current } = client.limits;
  await client[list.name].query().catch(() => {});
  expect(current).toBeDefined();
  expect(client.limits.current).toBe(current);
});

test('the limits are those of the key: the response to one that has ended, which has those of the address, changes nothing', async () => {
  let apiKey = service.key;
  const { client } = connect({ apiKey: () => apiKey });
  await client[list.name].query();
  const { current } = client.limits;
  apiKey = 'unknown';
  await expect(client[list.name].query()).rejects.toMatchObject({ code: 'invalid_api_key' });
  expect(client.limits.current).toBe(current);
});
