import {
  createClient,
  items,
  type NewPet,
  nextCursor,
  type Order,
  type Pet,
  pages,
} from '@animal-store/client';
import { beforeAll, describe, expect, expectTypeOf, test } from 'vitest';
import type { z } from 'zod';
import type { newPet, pet } from '../../../src/pets/schema.js';
import { type Intercept, interceptFetch } from '../../../test/support/intercepted-fetch.js';
import { useService } from '../../platform/test/support/test-service.js';

// Of the store's own lists, because the types of what comes out are theirs.

let pets: Pet[];

const { service } = useService();

beforeAll(async () => {
  const { client } = connect();
  pets = [];
  for (const status of ['available', 'sold', 'available', 'pending', 'available', 'sold'] as const) {
    pets.push(await client.createPet.mutate({ name: `Pet ${pets.length}`, categoryId: 1, status }));
  }
});

function connect(...intercepts: Intercept[]) {
  const { fetch, sent } = interceptFetch(...intercepts);
  return { client: createClient({ baseUrl: service.url, apiKey: service.key, fetch }), sent };
}

/** A service from before it named cursors, or a stream */
const withoutCursors: Intercept = async (send) => {
  const { status, headers, body } = await send();
  const others = [...headers].filter(([name]) => name !== 'x-next-cursor');
  return new Response(body, { status, headers: others });
};

async function collect<Item>(iterable: AsyncIterable<Item>): Promise<Item[]> {
  const collected: Item[] = [];
  for await (const item of iterable) collected.push(item);
  return collected;
}

test("the client names the service's own types", () => {
  const { client } = connect();
  expectTypeOf<NewPet>().toEqualTypeOf<z.input<typeof newPet>>();
  expectTypeOf<Pet>().toEqualTypeOf<z.output<typeof pet>>();
  expectTypeOf(pages(client.listPets)).toEqualTypeOf<AsyncGenerator<Pet[], void, undefined>>();
  expectTypeOf(items(client.listOrders)).toEqualTypeOf<AsyncGenerator<Order, void, undefined>>();
  // @ts-expect-error a filter that the list does not have
  pages(client.listPets, { colour: 'red' });
  // @ts-expect-error nor does a list have another one's
  items(client.listOrders, { status: 'sold' });
});

describe('pages', () => {
  test('iterates over all pages, and ends after the last, full as it may be, without a further request', async () => {
    const { client, sent } = connect();
    expect(await collect(pages(client.listPets, { limit: 2 }))).toEqual([
      pets.slice(0, 2),
      pets.slice(2, 4),
      pets.slice(4),
    ]);
    expect(sent).toHaveLength(3);
  });

  test('yields no empty page, keeps the filter, and uses the largest page size by default', async () => {
    const { client, sent } = connect();
    const available = pets.filter(({ status }) => status === 'available');
    const found = await collect(pages(client.listPets, { status: 'available', limit: 1 }));
    expect(found).toEqual(available.map((pet) => [pet]));
    expect(await collect(pages(client.listPets, { categoryId: 2 }))).toEqual([]);
    sent.length = 0;
    expect(await collect(pages(client.listPets))).toEqual([pets]);
    expect(sent).toHaveLength(1);
  });

  test('reads from the newest on, page by page', async () => {
    const { client, sent } = connect();
    const found = await collect(pages(client.listPets, { order: 'newest', limit: 4 }));
    expect(found.flat()).toEqual(pets.toReversed());
    expect(sent).toHaveLength(2);
    expect(await collect(items(client.listPets, { order: 'newest', limit: 4 }))).toEqual(pets.toReversed());
  });

  test('requests no page that is not consumed', async () => {
    const { client, sent } = connect();
    for await (const page of pages(client.listPets, { limit: 2 })) {
      expect(page).toEqual(pets.slice(0, 2));
      break;
    }
    expect(sent).toHaveLength(1);
  });

  test('ends when its signal is aborted', async () => {
    const { client, sent } = connect();
    const controller = new AbortController();
    const iterator = pages(client.listPets, { limit: 2 }, { signal: controller.signal });
    await iterator.next();
    controller.abort();
    await expect(iterator.next()).rejects.toMatchObject({ cause: { name: 'AbortError' } });
    expect(sent).toHaveLength(1);
  });

  test('reads all pages of a service that does not say which is the last', async () => {
    const { client, sent } = connect(...Array(9).fill(withoutCursors));
    expect((await collect(pages(client.listPets, { limit: 2 }))).flat()).toEqual(pets);
    expect(sent).toHaveLength(4);
  });
});

test('items iterates over the items of all pages, and requests none that is not consumed', async () => {
  const { client, sent } = connect();
  const all = items(client.listPets, { limit: 2 });
  expect(await all.next()).toEqual({ value: pets[0], done: false });
  expect(await all.next()).toEqual({ value: pets[1], done: false });
  expect(sent).toHaveLength(1);
  expect(await collect(all)).toEqual(pets.slice(2));
  expect(sent).toHaveLength(3);
});

test('each page of a batch has its own next cursor', async () => {
  const { client, sent } = connect();
  const { id = 0 } = pets[1] ?? {};
  const [first, failed, last] = await Promise.allSettled([
    client.listPets.query({ limit: 2 }),
    client.listPets.query({ limit: 1_000 }),
    client.listPets.query({ limit: 2, cursor: pets[3]?.id }),
  ]);
  expect(sent).toHaveLength(1);
  expect(failed.status).toBe('rejected');
  const read = (result: PromiseSettledResult<Pet[]>) =>
    result.status === 'fulfilled' ? nextCursor(result.value) : 'failed';
  expect([first, last].map(read)).toEqual([id, null]);
});

test.each<[string, (page: Pet[]) => Pet[]]>([
  ['a shallow copy', (page) => [...page]],
  ['a structured clone', structuredClone],
  ['a copy from JSON', (page) => JSON.parse(JSON.stringify(page))],
])('%s of each page leads to every item in either order, at one more request', async (_what, copy) => {
  const { client, sent } = connect();
  const oldestFirst = (cursor?: number) => client.listPets.query({ limit: 2, cursor });
  const newestFirst = async (cursor = Number.POSITIVE_INFINITY) =>
    pets
      .toReversed()
      .filter(({ id }) => id < cursor)
      .slice(0, 2);
  const readFrom = async (list: (cursor?: number) => Promise<Pet[]>, cursor?: number): Promise<Pet[]> => {
    const page = copy(await list(cursor));
    const next = nextCursor(page);
    return next == null ? page : [...page, ...(await readFrom(list, next))];
  };
  expect(await readFrom(oldestFirst)).toEqual(pets);
  expect(sent).toHaveLength(4);
  expect(await readFrom(newestFirst)).toEqual(pets.toReversed());
  expect(nextCursor(copy([]))).toBe(null);
});
