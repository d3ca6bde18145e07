import { QueryClient } from '@tanstack/react-query';
import type { inferRouterError, inferRouterInputs, inferRouterOutputs } from '@trpc/server';
import { createTRPCOptionsProxy } from '@trpc/tanstack-react-query';
import { afterAll, beforeAll, expect, expectTypeOf, test } from 'vitest';
import type { z } from 'zod';
import type { newPet, pet } from '../../../src/pets/schema.js';
import type { AppRouter as ServiceRouter } from '../../../src/router.js';
import { createFakeClock, interceptFetch, respondAsProxy } from '../../../test/support/intercepted-fetch.js';
import { startService, type TestService } from '../../../test/support/test-service.js';
import {
  type AppRouter,
  type ClientOptions,
  createClient,
  type Inputs,
  type NewPet,
  type Outputs,
  type Pet,
} from '../src/create-client.js';

let service: TestService;
let pets: Pet[];

beforeAll(async () => {
  service = await startService();
  const { client } = connect();
  pets = [];
  for (const status of ['available', 'sold', 'available', 'pending', 'available'] as const) {
    pets.push(await client.createPet.mutate({ name: `Pet ${pets.length}`, categoryId: 1, status }));
  }
});
afterAll(() => service.close());

function connect(options: Partial<ClientOptions> = {}) {
  const { fetch, sent } = interceptFetch();
  const client = createClient({ baseUrl: service.url, apiKey: service.key, fetch, ...options });
  return { client, sent };
}

async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const collected: Item[] = [];
  for await (const item of items) collected.push(item);
  return collected;
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
  expectTypeOf<NewPet>().toEqualTypeOf<z.input<typeof newPet>>();
  expectTypeOf<Pet>().toEqualTypeOf<z.output<typeof pet>>();
  expectTypeOf(client.createPet.mutate).parameter(0).toEqualTypeOf<NewPet>();
  expectTypeOf(client.createPet.mutate).returns.resolves.toEqualTypeOf<Pet>();
  expectTypeOf(client.listAllPets)
    .parameter(0)
    .toEqualTypeOf<{ limit?: number | undefined; status?: Pet['status'] | undefined } | undefined>();
});

test('a base URL may end in slashes, and have a path', async () => {
  const { client, sent } = connect({ baseUrl: `${service.url}//` });
  await client.listPets.query();
  expect(new URL(sent[0]?.url ?? '').pathname).toBe('/trpc/listPets');
});

test('fifty simultaneous calls are sent in batches of twenty, and each gets its own result', async () => {
  const { client, sent } = connect();
  const expected = Array.from({ length: 50 }, (_, index) => pets[index % pets.length] as Pet);
  expect(await Promise.all(expected.map(({ id }) => client.getPet.query({ petId: id })))).toEqual(expected);
  const sizes = sent.map(({ url }) => new URL(url).pathname.split(',').length);
  expect(sizes).toEqual([20, 20, 10]);
});

test('a batch is split before its URL grows too long', async () => {
  const { client, sent } = connect();
  const status = 'x'.repeat(1_500) as Pet['status'];
  await Promise.allSettled([1, 2, 3, 4].map((limit) => client.listPets.query({ status, limit })));
  expect(sent).toHaveLength(2);
  for (const { url } of sent) expect(url.length).toBeLessThanOrEqual(4_000);
});

test('a key function runs before each request, and no key is sent when it returns none', async () => {
  const keys = [service.key, undefined];
  const { client, sent } = connect({ apiKey: () => keys[sent.length] });
  await client.listPets.query();
  const failure = await client.listPets.query().catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: 'missing_api_key', status: 401 });
  expect(sent.map(({ headers }) => headers.get('authorization'))).toEqual([`Bearer ${service.key}`, null]);
});

test('listAllPets iterates over all pages and ends after the last', async () => {
  const { client, sent } = connect();
  const pages = await collect(client.listAllPets({ limit: 2 }));
  expect(pages).toEqual([pets.slice(0, 2), pets.slice(2, 4), pets.slice(4)]);
  expect(sent).toHaveLength(3);
});

test('listAllPets yields no empty page, keeps the filter, and uses the largest page size by default', async () => {
  const { client, sent } = connect();
  const available = pets.filter(({ status }) => status === 'available');
  const pages = await collect(client.listAllPets({ status: 'available', limit: 1 }));
  expect(pages).toEqual(available.map((pet) => [pet]));
  sent.length = 0;
  expect(await collect(client.listAllPets())).toEqual([pets]);
  expect(sent).toHaveLength(1);
});

test('listAllPets requests no page that is not consumed', async () => {
  const { client, sent } = connect();
  for await (const page of client.listAllPets({ limit: 2 })) {
    expect(page).toEqual(pets.slice(0, 2));
    break;
  }
  expect(sent).toHaveLength(1);
});

test('listAllPets ends when its signal is aborted', async () => {
  const { client, sent } = connect();
  const controller = new AbortController();
  const pages = client.listAllPets({ limit: 2 }, { signal: controller.signal });
  await pages.next();
  controller.abort();
  await expect(pages.next()).rejects.toMatchObject({ cause: { name: 'AbortError' } });
  expect(sent).toHaveLength(1);
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
  await client.listPets.query();
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
  await client.getPet.query({ petId: 0 }).catch(() => {});
  unsubscribe();
  await client.listPets.query();
  expect(seen).toEqual([59, 58]);
  expect(client.limits.current?.remaining).toBe(57);
});

test('a response that is not from the service leaves the limit status as it was', async () => {
  const { fetch } = interceptFetch((send) => send(), respondAsProxy(404));
  const { client } = connect({ fetch });
  await client.listPets.query();
  const { current } = client.limits;
  await client.listPets.query().catch(() => {});
  expect(current).toBeDefined();
  expect(client.limits.current).toBe(current);
});

test('TanStack Query accepts the client', async () => {
  const { client } = connect();
  const queryClient = new QueryClient();
  const trpc = createTRPCOptionsProxy<AppRouter>({ client, queryClient });
  expect(await queryClient.fetchQuery(trpc.listPets.queryOptions({ status: 'sold' }))).toEqual([pets[1]]);
  queryClient.clear();
});
