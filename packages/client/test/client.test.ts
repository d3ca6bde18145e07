import { QueryClient } from '@tanstack/react-query';
import { createTRPCOptionsProxy } from '@trpc/tanstack-react-query';
import { afterAll, beforeAll, expect, expectTypeOf, test } from 'vitest';
import { fakeClock, interpose, misroute, reset } from '../../../test/support/interposed-fetch.js';
import { startService, type TestService } from '../../../test/support/test-service.js';
import {
  type AppRouter,
  type ClientOptions,
  createClient,
  isApiError,
  type NewPet,
  type Pet,
} from '../src/client.js';

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
  const { fetch, sent } = interpose();
  const client = createClient({ baseUrl: service.url, apiKey: service.key, fetch, ...options });
  return { client, sent };
}

async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const collected: Item[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}

test("the client has the service's own types", () => {
  const { client } = connect();
  expectTypeOf<NewPet>().toEqualTypeOf<{
    name: string;
    categoryId: number;
    status?: 'available' | 'pending' | 'sold' | undefined;
  }>();
  expectTypeOf(client.createPet.mutate).parameter(0).toEqualTypeOf<NewPet>();
  expectTypeOf(client.createPet.mutate).returns.resolves.toEqualTypeOf<Pet>();
  expectTypeOf(client.listAllPets)
    .parameter(0)
    .toEqualTypeOf<{ limit?: number | undefined; status?: Pet['status'] | undefined } | undefined>();
});

test('a base address may end in a slash, and have a path', async () => {
  const { client, sent } = connect({ baseUrl: `${service.url}//` });
  await client.listPets.query();
  expect(new URL(sent[0]?.url ?? '').pathname).toBe('/trpc/listPets');
});

test('fifty calls at the same time go as batches of twenty, and find their answers', async () => {
  const { client, sent } = connect();
  const asked = Array.from({ length: 50 }, (_, index) => pets[index % pets.length] as Pet);
  expect(await Promise.all(asked.map(({ id }) => client.getPet.query({ petId: id })))).toEqual(asked);
  const sizes = sent.map(({ url }) => new URL(url).pathname.split(',').length);
  expect(sizes).toEqual([20, 20, 10]);
});

test('a batch does not outgrow what addresses may hold', async () => {
  const { client, sent } = connect();
  const status = 'x'.repeat(1_500) as Pet['status'];
  await Promise.allSettled([1, 2, 3, 4].map((limit) => client.listPets.query({ status, limit })));
  expect(sent).toHaveLength(2);
  for (const { url } of sent) expect(url.length).toBeLessThanOrEqual(4_000);
});

test('the key is asked for with each request, and none is sent when there is none', async () => {
  const keys = [service.key, undefined];
  const { client, sent } = connect({ apiKey: () => keys[sent.length] });
  await client.listPets.query();
  const failure = await client.listPets.query().catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: 'missing_api_key', status: 401 });
  expect(sent.map(({ headers }) => headers.get('authorization'))).toEqual([`Bearer ${service.key}`, null]);
});

test("an error of the service's is known by its code, whatever the status", async () => {
  const { client } = connect();
  const spent = await service.keys.create({
    name: 'spent',
    plan: 'enterprise',
    perMinute: 1,
    perDay: 10,
    expiresAt: null,
  });
  const limited = connect({ apiKey: spent.key }).client;
  await limited.listPets.query();
  const failures: [() => Promise<unknown>, object][] = [
    [() => client.getPet.query({ petId: 0 }), { code: 'not_found', status: 404 }],
    [() => client.createPet.mutate({ name: '', categoryId: 1 }), { code: 'invalid_request', status: 400 }],
    [() => connect({ apiKey: 'nonsense' }).client.listPets.query(), { code: 'invalid_api_key', status: 401 }],
    [
      () => limited.listPets.query(),
      { code: 'rate_limit_exceeded', status: 429, retryAfterSeconds: expect.any(Number) },
    ],
  ];
  for (const [call, expected] of failures) {
    const failure = await call().catch((error: unknown) => error);
    if (!isApiError(failure)) throw failure;
    expect(failure).toMatchObject(expected);
    expect(failure.message).toBe(failure.data?.error.message);
    const response = failure.meta?.response as Response | undefined;
    expect(failure.requestId).toMatch(/^[0-9a-f-]{36}$/);
    expect(response?.headers.get('x-request-id')).toBe(failure.requestId);
  }
});

test('what is no answer of the service is no error of the service', async () => {
  for (const fault of [reset, misroute(502), misroute(404)]) {
    const { client } = connect({ fetch: interpose(fault).fetch, retry: { attempts: 1 } });
    const failure = await client.listPets.query().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(Error);
    expect(isApiError(failure)).toBe(false);
  }
  for (const other of [new Error('no'), undefined, { code: 'not_found' }])
    expect(isApiError(other)).toBe(false);
});

test('listAllPets walks over all pages and ends after the last', async () => {
  const { client, sent } = connect();
  const pages = await collect(client.listAllPets({ limit: 2 }));
  expect(pages).toEqual([pets.slice(0, 2), pets.slice(2, 4), pets.slice(4)]);
  expect(sent).toHaveLength(3);
});

test('listAllPets yields no empty page, keeps the filter, and takes the largest pages by itself', async () => {
  const { client, sent } = connect();
  const available = pets.filter(({ status }) => status === 'available');
  const pages = await collect(client.listAllPets({ status: 'available', limit: 1 }));
  expect(pages).toEqual(available.map((pet) => [pet]));
  sent.length = 0;
  expect(await collect(client.listAllPets())).toEqual([pets]);
  expect(sent).toHaveLength(1);
});

test('listAllPets asks for no page that is not wanted', async () => {
  const { client, sent } = connect();
  for await (const page of client.listAllPets({ limit: 2 })) {
    expect(page).toEqual(pets.slice(0, 2));
    break;
  }
  expect(sent).toHaveLength(1);
});

test('listAllPets ends with the signal', async () => {
  const { client, sent } = connect();
  const controller = new AbortController();
  const pages = client.listAllPets({ limit: 2 }, { signal: controller.signal });
  await pages.next();
  controller.abort();
  await expect(pages.next()).rejects.toMatchObject({ cause: { name: 'AbortError' } });
  expect(sent).toHaveLength(1);
});

test('the client knows where the caller stands, and says so to who listens', async () => {
  const { key } = await service.keys.create({
    name: 'gauge',
    plan: 'free',
    perMinute: null,
    perDay: null,
    expiresAt: null,
  });
  const { clock } = fakeClock();
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

test('the limit state is the same object until another answer of the service', async () => {
  const { fetch } = interpose((send) => send(), misroute(404));
  const { client } = connect({ fetch });
  await client.listPets.query();
  const { current } = client.limits;
  await client.listPets.query().catch(() => {});
  expect(current).toBeDefined();
  expect(client.limits.current).toBe(current);
});

test('TanStack Query takes the client', async () => {
  const { client } = connect();
  const queryClient = new QueryClient();
  const trpc = createTRPCOptionsProxy<AppRouter>({ client, queryClient });
  expect(await queryClient.fetchQuery(trpc.listPets.queryOptions({ status: 'sold' }))).toEqual([pets[1]]);
  queryClient.clear();
});
