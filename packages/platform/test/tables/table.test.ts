import { execute } from '@animal-store/platform/testing';
import { expect, expectTypeOf, test } from 'vitest';
import { type Table, table } from '../../src/tables/table.js';
import { createTestDatabase } from '../support/test-service.js';

interface NewSail {
  readonly name: string;
  readonly makerId: number;
  readonly status: 'new' | 'used';
}
type Sail = NewSail & { readonly id: number };

const types = { id: 'bigint', name: 'text', makerId: 'bigint', status: 'sail_status' } as const;

test('a description that does not fit its rows does not compile', () => {
  expectTypeOf(table<Sail, NewSail>('sails', types)).toEqualTypeOf<Table<Sail, NewSail>>();
  // @ts-expect-error the types of two columns are swapped
  table<Sail, NewSail>('sails', { ...types, name: 'bigint', makerId: 'text' });
  // @ts-expect-error a status is an enum
  table<Sail, NewSail>('sails', { ...types, status: 'text' });
  // @ts-expect-error a name is no enum
  table<Sail, NewSail>('sails', { ...types, name: 'sail_status' });
  // @ts-expect-error a sail has a status
  table<Sail, NewSail>('sails', { id: 'bigint', name: 'text', makerId: 'bigint' });
  // @ts-expect-error a sail has no colour
  table<Sail, NewSail>('sails', { ...types, colour: 'text' });
  // @ts-expect-error a new sail lacks what a sail has
  table<Sail & { colour: string }, NewSail>('sails', { ...types, colour: 'text' });
  // @ts-expect-error a sail lacks what a new one has
  table<Sail, NewSail & { colour: string }>('sails', types);
  // @ts-expect-error a field that may be left out would be null in the output
  table<Sail & { colour?: string }, NewSail & { colour?: string }>('sails', { ...types, colour: 'text' });
});

test('dates, decimals and lists have types of their own', () => {
  interface NewLoan {
    readonly due: string | null;
    readonly fine: string;
    readonly tags: readonly string[];
    readonly pages: readonly number[] | null;
    readonly states: readonly ('lent' | 'back')[];
  }
  type Loan = NewLoan & { readonly id: number };
  const fits = { id: 'bigint', due: 'date', fine: 'decimal', tags: 'text[]', pages: 'integer[]' } as const;
  const states = 'loan_state[]';
  table<Loan, NewLoan>('loans', { ...fits, states });
  // @ts-expect-error a list is no text
  table<Loan, NewLoan>('loans', { ...fits, states, tags: 'text' });
  // @ts-expect-error a text is no list
  table<Loan, NewLoan>('loans', { ...fits, states, due: 'text[]' });
  // @ts-expect-error pages are numbers
  table<Loan, NewLoan>('loans', { ...fits, states, pages: 'text[]' });
  // @ts-expect-error a state is an enum
  table<Loan, NewLoan>('loans', { ...fits, states: 'text[]' });
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
