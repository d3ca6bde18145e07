import { expect, expectTypeOf, test } from 'vitest';
import { type Table, table } from '../../src/database/table.js';
import type { NewPet, Pet } from '../../src/pets/schema.js';
import { execute } from '../support/execute.js';
import { createTestDatabase } from '../support/test-service.js';

const types = { id: 'bigint', name: 'text', categoryId: 'bigint', status: 'pet_status' } as const;

test('a description that does not fit its rows does not compile', () => {
  expectTypeOf(table<Pet, NewPet>('pets', types)).toEqualTypeOf<Table<Pet, NewPet>>();
  // @ts-expect-error the types of two columns are swapped
  table<Pet, NewPet>('pets', { ...types, name: 'bigint', categoryId: 'text' });
  // @ts-expect-error a status is an enum
  table<Pet, NewPet>('pets', { ...types, status: 'text' });
  // @ts-expect-error a name is no enum
  table<Pet, NewPet>('pets', { ...types, name: 'pet_status' });
  // @ts-expect-error a pet has a status
  table<Pet, NewPet>('pets', { id: 'bigint', name: 'text', categoryId: 'bigint' });
  // @ts-expect-error a pet has no breed
  table<Pet, NewPet>('pets', { ...types, breed: 'text' });
  // @ts-expect-error a new pet lacks what a pet has
  table<Pet & { breed: string }, NewPet>('pets', { ...types, breed: 'text' });
  // @ts-expect-error a pet lacks what a new one has
  table<Pet, NewPet & { breed: string }>('pets', types);
  // @ts-expect-error a field that may be left out would be null in the output
  table<Pet & { breed?: string }, NewPet & { breed?: string }>('pets', { ...types, breed: 'text' });
});

test('rows are the same, whether they are read one by one or by column, with null and names that SQL reserves', async () => {
  interface NewItem {
    readonly order: string | null;
    readonly isSold: boolean;
    readonly maxCount: number;
  }
  const items = table<NewItem & { readonly id: number }, NewItem>('items', {
    id: 'bigint',
    order: 'text',
    isSold: 'boolean',
    maxCount: 'integer',
  });
  const url = await createTestDatabase();
  await execute(url, 'CREATE TABLE items (id bigint, "order" text, is_sold boolean, max_count integer)');
  const readAll = async () => {
    const [row] = await execute<{ columns: [] }>(url, `SELECT ${items.jsonColumns} AS columns FROM items`);
    return items.toRows(row?.columns ?? []);
  };
  expect(await readAll()).toEqual([]);
  await execute(
    url,
    `INSERT INTO items VALUES (1, 'a', true, 2), (${Number.MAX_SAFE_INTEGER}, NULL, false, -3)`,
  );
  const expected = [
    { id: 1, order: 'a', isSold: true, maxCount: 2 },
    { id: Number.MAX_SAFE_INTEGER, order: null, isSold: false, maxCount: -3 },
  ];
  expect(await readAll()).toEqual(expected);
  const rows = await execute<{ item: object }>(url, `SELECT ${items.json} AS item FROM items ORDER BY id`);
  expect(rows.map(({ item }) => item)).toEqual(expected);
});
