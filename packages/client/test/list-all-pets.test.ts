import { afterAll, beforeAll, expect, expectTypeOf, test } from 'vitest';
import type { z } from 'zod';
import type { newPet, pet } from '../../../src/pets/schema.js';
import { interceptFetch } from '../../../test/support/intercepted-fetch.js';
import { startService, type TestService } from '../../../test/support/test-service.js';
import { createClient, type ListPetsInput, type NewPet, type Pet } from '../src/create-client.js';

// What the client has for the animals alone: a helper, and types by their names.

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

function connect() {
  const { fetch, sent } = interceptFetch();
  return { client: createClient({ baseUrl: service.url, apiKey: service.key, fetch }), sent };
}

async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const collected: Item[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}

test("the client names the service's own types", () => {
  const { client } = connect();
  expectTypeOf<NewPet>().toEqualTypeOf<z.input<typeof newPet>>();
  expectTypeOf<Pet>().toEqualTypeOf<z.output<typeof pet>>();
  expectTypeOf(client.listAllPets).parameter(0).toEqualTypeOf<Omit<ListPetsInput, 'cursor'> | undefined>();
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
