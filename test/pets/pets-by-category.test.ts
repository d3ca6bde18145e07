import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Pet } from '../../src/pets/schema.js';
import { explainPrepared } from '../support/explain.js';
import { toolCall } from '../support/mcp.js';
import {
  type Caller,
  createCaller,
  PUBLIC_URL,
  rpcPath,
  startService,
  type TestService,
} from '../support/test-service.js';

let service: TestService;
let call: Caller;
let all: Pet[];

const LOWEST = -(2 ** 53 - 1);

beforeAll(async () => {
  service = await startService();
  call = createCaller(service);
  await service.database.pool.query(`
    INSERT INTO pets (name, category_id, status)
    SELECT 'Pet ' || n, (ARRAY[0, 3, ${LOWEST}])[n % 3 + 1], (ARRAY['available', 'pending', 'sold'])[n / 3 % 3 + 1]::pet_status
    FROM generate_series(0, 89) n`);
  all = (await call('/v1/pets?limit=100')).body;
});
afterAll(() => service.close());

/** Follows Link to the end. */
async function readAll(first: string): Promise<Pet[]> {
  const pets: Pet[] = [];
  for (let path: string | undefined = first; path !== undefined; ) {
    const { body, headers } = await call(path);
    pets.push(...body);
    path = /^<([^>]+)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1]?.replace(PUBLIC_URL, '');
  }
  return pets;
}

test.each([0, 3, LOWEST])(
  'a page of category %d has its animals alone, by ascending id, and Link leads through all',
  async (categoryId) => {
    const expected = all.filter((pet) => pet.categoryId === categoryId);
    expect(expected).toHaveLength(30);
    expect(await readAll(`/v1/pets?categoryId=${categoryId}&limit=7`)).toEqual(expected);
  },
);

test('category and status together list what has both', async () => {
  const expected = all.filter((pet) => pet.categoryId === 3 && pet.status === 'sold');
  expect(expected).toHaveLength(10);
  expect(await readAll('/v1/pets?status=sold&categoryId=3&limit=3')).toEqual(expected);
});

test('pages that are asked for at the same time each get what they filter by', async () => {
  const filters = [
    {},
    { categoryId: 0 },
    { categoryId: 3 },
    { status: 'sold' },
    { categoryId: 3, status: 'sold' },
  ];
  const inputs = Array.from({ length: 40 }, (_, n) => ({ ...filters[n % filters.length], limit: 100 }));
  const answers = await Promise.all(inputs.map((input) => call(rpcPath('listPets', input))));
  for (const [index, { body }] of answers.entries()) {
    const wanted = Object.entries(filters[index % filters.length] as object);
    expect(body.result.data).toEqual(
      all.filter((pet) => wanted.every(([name, value]) => pet[name as keyof Pet] === value)),
    );
  }
});

test('a category that no animal has is an empty list, and what is no integer is a 400', async () => {
  expect((await call('/v1/pets?categoryId=4')).body).toEqual([]);
  for (const value of ['', 'x', '1.5', '0x3', ' 3', '9007199254740993', '3&categoryId=0'])
    expect([value, (await call(`/v1/pets?categoryId=${value}`)).status]).toEqual([value, 400]);
  for (const categoryId of ['3', null, 1.5, []])
    expect((await call(rpcPath('listPets', { categoryId }))).status).toBe(400);
});

test('each combination of filters has an index that PostgreSQL uses, in a plan that was made for few animals', async () => {
  for (const filter of [{ status: 'sold' }, { categoryId: 3 }, { categoryId: 3, status: 'sold' }])
    await call(rpcPath('listPets', filter));
  await service.database.pool.query(
    "INSERT INTO pets (name, category_id) SELECT 'Pet', 1000 + n FROM generate_series(1, 20000) n",
  );
  const explain = (by: string, values: string) =>
    explainPrepared(service.serviceDatabase.reads.pool, `pets-list-by-${by}`, `'{1}', '{20}', ${values}`);
  expect(await explain('status', "'{sold}'")).toContain('pets_status_id_idx');
  expect(await explain('categoryId', "'{3}'")).toContain('pets_category_id_id_idx');
  expect(await explain('status-categoryId', "'{sold}', '{3}'")).toContain('pets_status_category_id_id_idx');
});

test('an assistant finds the available animals of a category', async () => {
  const { body } = await call('/mcp', toolCall('listPets', { categoryId: 3, status: 'available', limit: 5 }));
  const expected = all.filter((pet) => pet.categoryId === 3 && pet.status === 'available').slice(0, 5);
  expect(body.result.structuredContent).toEqual({ items: expected, nextCursor: expected.at(-1)?.id });
});
