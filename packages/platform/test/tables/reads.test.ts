import { randomUUID } from 'node:crypto';
import { execute } from '@animal-store/platform/testing';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { definition } from '#operations-under-test';
import { type Database, openDatabase } from '../../src/connections/client.js';
import { createInsert } from '../../src/tables/inserts.js';
import { createReads } from '../../src/tables/reads.js';
import { table } from '../../src/tables/table.js';
import { explainPrepared } from '../support/explain.js';
import { asService } from '../support/service-role.js';
import { createTestDatabase, startService } from '../support/test-service.js';

interface NewRental {
  readonly boatId: number;
  readonly state: 'out' | 'back';
  readonly group: string | null;
  readonly due: string | null;
  readonly rentedAt: string;
  readonly fine: string | null;
  readonly tags: readonly string[];
  readonly pages: readonly number[] | null;
  readonly states: readonly ('out' | 'back')[];
}
type Rental = NewRental & { readonly id: number };

const rentals = table<Rental, NewRental>('rentals', {
  id: 'bigint',
  boatId: 'bigint',
  state: 'rental_state',
  group: 'text',
  due: 'date',
  rentedAt: 'timestamptz',
  fine: 'decimal',
  tags: 'text[]',
  pages: 'bigint[]',
  states: 'rental_state[]',
});
const SETUP = `
  CREATE TYPE rental_state AS ENUM ('out', 'back');
  CREATE TABLE rentals (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, boat_id bigint NOT NULL, state rental_state NOT NULL, "group" text,
    due date, rented_at timestamptz NOT NULL, fine decimal(10, 2), tags text[] NOT NULL, pages bigint[],
    states rental_state[] NOT NULL, deleted_at timestamptz);
  CREATE INDEX ON rentals (boat_id, id); CREATE INDEX ON rentals (state, id); CREATE INDEX ON rentals (boat_id, state, id);
  INSERT INTO insert_turns VALUES ('rentals');
  GRANT SELECT, INSERT ON rentals TO PUBLIC`;

const RENTAL: NewRental = {
  boatId: 1,
  state: 'out',
  group: 'a',
  due: '2026-02-03',
  rentedAt: '2026-01-31T23:59:59.123Z',
  fine: '12345678.90',
  tags: ['a', 'b,c', '"}\\', 'NULL', '', ' '],
  pages: [1, -Number.MAX_SAFE_INTEGER],
  states: ['out', 'back'],
};
const EMPTY: NewRental = { ...RENTAL, group: null, due: null, fine: null, tags: [], pages: null, states: [] };

let databaseUrl: string;
let database: Database;

beforeAll(async () => {
  databaseUrl = await createTestDatabase();
  await execute(databaseUrl, SETUP);
  database = openDatabase(asService(databaseUrl), () => {}, definition);
});
afterAll(() => database.close());

/** Settings that others leave behind before each statement. */
const SETTINGS = [
  "datestyle = 'German'",
  "datestyle = 'SQL, DMY'",
  "timezone = 'America/St_Johns'",
  'extra_float_digits = -15',
  'standard_conforming_strings = off',
  "search_path = ''",
  "intervalstyle = 'sql_standard'",
];

test.each([undefined, ...SETTINGS])(
  'a row is read as it was inserted, one by one and together, with every type and with null (%s)',
  async (setting) => {
    const own = openDatabase(asService(databaseUrl), () => {}, definition);
    if (setting !== undefined)
      for (const { pool } of [own.reads, own.writes])
        pool.on('acquire', (client) => void client.query(`SET ${setting}`).catch(() => {}));
    const insert = createInsert(own, rentals);
    const reads = createReads(own, rentals);
    const key = (value: string) => ({
      apiKeyId: randomUUID(),
      value,
      operation: 'lend',
      batchIndex: 0,
      bodyHash: new Uint8Array(32),
    });
    const inserted = [RENTAL, EMPTY, EMPTY, { ...EMPTY, tags: ['one'] }];
    const created = await Promise.all([
      ...inserted.map((row) => insert(row)),
      ...inserted.map((row, index) => insert(row, key(`key-${index}`))),
    ]);
    const outputs = created.map(({ output }) => output);
    expect(outputs.map(({ id, ...row }) => row)).toEqual([...inserted, ...inserted]);
    const first = outputs[0] as Rental;
    expect(await reads.get(first.id)).toEqual(first);
    expect(await Promise.all(outputs.map(({ id }) => reads.get(id)))).toEqual(outputs);
    const ascending = [...outputs].sort((a, b) => a.id - b.id);
    expect(
      await reads.list({ limit: outputs.length, cursor: Math.min(...outputs.map(({ id }) => id)) - 1 }),
    ).toEqual(ascending);
    await own.close();
  },
);

test('a decimal is stored exactly and returned with all digits of its column, a time to the millisecond', async () => {
  const insert = createInsert(database, rentals);
  const { output } = await insert({ ...RENTAL, fine: '99999999.9', rentedAt: '2026-01-31T09:30:00Z' });
  expect([output.fine, output.rentedAt]).toEqual(['99999999.90', '2026-01-31T09:30:00.000Z']);
});

test('a time that is not NULL never reads as none', async () => {
  const [row] = await execute<{ id: number }>(
    databaseUrl,
    `INSERT INTO rentals (boat_id, state, rented_at, due, tags, states)
     VALUES (1, 'out', 'infinity', 'infinity', '{}', '{}') RETURNING id::int`,
  );
  const found = await createReads(database, rentals).get(row?.id ?? 0);
  expect([found?.rentedAt, found?.due]).toEqual(['infinity', 'infinity']);
});

describe('pages of a filtered list', () => {
  const atHour = (hour: number) => `2026-01-31T0${hour}:00:00.000Z`;
  let url: string;
  let own: Database;
  let rows: readonly Rental[];

  beforeAll(async () => {
    url = await createTestDatabase();
    await execute(url, SETUP);
    own = openDatabase(asService(url), () => {}, definition);
    const insert = createInsert(own, rentals);
    const created: Rental[] = [];
    for (let n = 0; n < 24; n += 1) {
      const rental = {
        ...EMPTY,
        boatId: n % 3,
        state: n % 4 < 2 ? 'out' : 'back',
        group: n % 2 ? '"a"' : 'b',
        rentedAt: atHour(n % 8),
      } as const;
      created.push((await insert(rental)).output);
    }
    rows = created;
    await execute(url, 'UPDATE rentals SET deleted_at = now() WHERE id % 5 = 0');
  });
  afterAll(() => own.close());

  test('have the rows that match all filters of the request, the oldest or the newest first, up to one more than the limit', async () => {
    const byBoat = createReads(own, rentals, { filters: ['boatId', 'state'] });
    const byGroup = createReads(own, rentals, { filters: ['group', 'state'] });
    const states = [undefined, 'out' as const].flatMap((state) =>
      [undefined, 5].flatMap((cursor) =>
        [undefined, 'oldest' as const, 'newest' as const].map((order) => ({
          limit: 2,
          state,
          cursor,
          order,
        })),
      ),
    );
    const ofBoats = [undefined, 0, 1].flatMap((boatId) => states.map((each) => ({ boatId, ...each })));
    const ofGroups = [undefined, '"a"'].flatMap((group) => states.map((each) => ({ group, ...each })));
    const pages = await Promise.all([
      ...ofBoats.map((each) => byBoat.list(each)),
      ...ofGroups.map((each) => byGroup.list(each)),
    ]);
    const expected = [...ofBoats, ...ofGroups].map(({ limit, cursor, order, ...filter }) =>
      (order === 'newest' ? rows.toReversed() : rows)
        .filter(({ id }) => cursor === undefined || (order === 'newest' ? id < cursor : id > cursor))
        .filter((rental) =>
          Object.entries(filter).every(
            ([name, value]) => value === undefined || rental[name as keyof Rental] === value,
          ),
        )
        .slice(0, limit + 1),
    );
    expect(pages).toEqual(expected);
  });

  test('have only rows before their bound, beside all other members, and none at it', async () => {
    const other = openDatabase(asService(url), () => {}, definition);
    const bounded = createReads(other, rentals, {
      filters: ['boatId', 'state'],
      before: { member: 'rentedBefore', field: 'rentedAt' },
    });
    const asked = [undefined, 1].flatMap((boatId) =>
      [undefined, 'out' as const].flatMap((state) =>
        (['oldest', 'newest'] as const).flatMap((order) =>
          [undefined, atHour(3)].map((rentedBefore) => ({ boatId, state, order, rentedBefore })),
        ),
      ),
    );
    const pages = await Promise.all(asked.map((each) => bounded.list({ limit: 3, cursor: 12, ...each })));
    const expected = asked.map(({ boatId, state, order, rentedBefore }) =>
      (order === 'newest' ? rows.toReversed() : rows)
        .filter(({ id }) => (order === 'newest' ? id < 12 : id > 12))
        .filter((rental) => boatId === undefined || rental.boatId === boatId)
        .filter((rental) => state === undefined || rental.state === state)
        .filter(({ rentedAt }) => rentedBefore === undefined || rentedAt < rentedBefore)
        .slice(0, 4)
        .map(({ id }) => id),
    );
    expect(pages.map((page) => page.map(({ id }) => id))).toEqual(expected);
    expect(other.reads.describePlans().match(/EXPLAIN/g)).toHaveLength(15);
    await other.reads.pool.query(other.reads.describePlans());
    await other.close();
  });

  test('have none of the rows that a condition excludes, nor has a read by id', async () => {
    const other = openDatabase(asService(url), () => {}, definition);
    const reads = createReads(other, rentals, { filters: ['boatId'], where: 'deleted_at IS NULL' });
    const ids = rows.filter(({ id }) => id % 5 !== 0).map(({ id }) => id);
    expect((await reads.list({ limit: 100 })).map(({ id }) => id)).toEqual(ids);
    const ofBoat = await reads.list({ limit: 100, boatId: 1 });
    expect(ofBoat).toEqual(rows.filter(({ id, boatId }) => id % 5 !== 0 && boatId === 1));
    expect(await Promise.all([5, 6, 10].map(async (id) => (await reads.get(id))?.id))).toEqual([
      undefined,
      6,
      undefined,
    ]);
    expect(await reads.get(5)).toBeUndefined();
    await other.close();
  });

  test('are known to readiness, and are found by the index on the filters and the id', async () => {
    await execute(
      url,
      `INSERT INTO rentals (boat_id, state, rented_at, tags, states)
       SELECT n % 5, CASE WHEN n < 19900 THEN 'back' ELSE 'out' END::rental_state, now(), '{}', '{}'
       FROM generate_series(1, 20000) AS n`,
    );
    await execute(url, 'ANALYZE rentals');
    const other = openDatabase(asService(url), () => {}, definition);
    const reads = createReads(other, rentals, { filters: ['boatId', 'state'] });
    await other.reads.pool.query(other.reads.describePlans());
    expect(other.reads.describePlans().match(/EXPLAIN/g)).toHaveLength(7);
    for (const boatId of [1, undefined]) await reads.list({ limit: 20, boatId, state: 'out' });
    const explain = (by: string, values: string) =>
      explainPrepared(other.reads.pool, `rentals-list-by-${by}`, `'{1}', '{20}', ${values}`);
    expect(await explain('boatId-state', "'{1}', '{out}'")).toContain(
      'Index Scan using rentals_boat_id_state_id_idx',
    );
    expect(await explain('state', "'{out}'")).toContain('Index Scan using rentals_state_id_idx');
    for (const state of ['out', undefined] as const)
      await reads.list({ limit: 20, boatId: 1, state, order: 'newest' });
    expect(await explain('boatId-state-newest', "'{1}', '{out}'")).toContain(
      'Index Scan Backward using rentals_boat_id_state_id_idx',
    );
    expect(await explain('boatId-newest', "'{1}'")).toContain(
      'Index Scan Backward using rentals_boat_id_id_idx',
    );
    await other.close();
  });
});

test('a table that is read in two ways under the same names stops the start', async () => {
  const other = openDatabase(asService(databaseUrl), () => {}, definition);
  createReads(other, rentals);
  createReads(other, rentals);
  expect(() => createReads(other, rentals, { where: 'deleted_at IS NULL' })).toThrow(
    'Two statements are named rentals-get',
  );
  await other.close();
});

test('more filters than there can be statements for are refused at the start', () => {
  expect(() => createReads(database, rentals, { filters: ['boatId', 'state', 'group'] })).toThrow(
    'rentals: pages can be filtered by at most 2 fields at once',
  );
});

test('a filter with the name of another member of pages is refused at the start', () => {
  expect(() => createReads(database, rentals, { filters: ['limit' as 'group'] })).toThrow(
    'rentals: limit, cursor, order are members of every page, and no filters',
  );
});

test('a list that is asked by a member which is no filter of its statements fails, as it would show other rows', async () => {
  const service = await startService();
  onTestFinished(() => service.close());
  const asked = { limit: 1, parentOfNone: 7 } as never;
  expect(() => service.items.list(asked)).toThrow(/cannot be listed by parentOfNone: .*filters/);
});
