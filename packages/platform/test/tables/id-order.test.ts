import { type Caller, createCaller, post, untilServed } from '@animal-store/platform/testing';
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { create, insertSql, list, TABLE } from '#operations-under-test';
import { startService, type TestService } from '../support/test-service.js';

let service: TestService;
let call: Caller;
/** A connection of somebody else */
let other: pg.Client;

beforeEach(async () => {
  service = await startService();
  call = createCaller(service);
  other = new pg.Client(service.databaseUrl);
  await other.connect();
});
afterEach(async () => {
  await other.end();
  await service.close();
});

const TAKE_TURN = `SELECT FROM insert_turns WHERE table_name = '${TABLE}' FOR UPDATE`;

/** Inserts a row and does not commit it. */
async function insertUncommitted(): Promise<number> {
  const { rows } = await other.query(`${insertSql("'Uncommitted'")} RETURNING id::int`);
  return rows[0].id;
}

/** How many transactions wait for another one. */
async function countWaiting(): Promise<number> {
  const { rows } = await service.database.pool.query(
    `SELECT count(*)::int AS waiting FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock'`,
  );
  return rows[0].waiting;
}

const createAt = (node: TestService, headers: Record<string, string> = {}) =>
  createCaller({ ...node, key: service.key })(create.path, post(create.body, headers));

/** On a busy machine a create may wait for longer than a request may, and is sent again. */
const createServed = (...create: Parameters<typeof createAt>) => untilServed(() => createAt(...create));

test.each([
  ['without an Idempotency-Key', () => ({})],
  ['with one', () => ({ 'idempotency-key': crypto.randomUUID() })],
])('an item becomes visible after those with lower ids that the service adds: %s', async (_name, headers) => {
  await other.query('BEGIN');
  await other.query(TAKE_TURN);
  const first = await insertUncommitted();
  const creating = createServed(service, headers());
  await expect.poll(countWaiting, { interval: 5 }).toBe(1);
  expect((await call(list.path)).body).toEqual([]);
  await other.query('COMMIT');
  const { status, body } = await creating;
  expect([status, body.id > first]).toEqual([201, true]);
  const ids = (await call(list.path)).body.map(({ id }: { id: number }) => id);
  expect([ids.at(0), ids.at(-1)]).toEqual([first, body.id]);
});

test('a create whose turn does not come is a 503, and nothing of it is stored', async () => {
  expect((await createAt(service)).status).toBe(201);
  await other.query('BEGIN');
  await other.query(TAKE_TURN);
  const ended = await Promise.all([createAt(service), createAt(service, { 'idempotency-key': 'one' })]);
  expect(ended.map(({ status }) => status)).toEqual([503, 503]);
  expect((await call(list.path)).body).toHaveLength(1);
  await other.query('ROLLBACK');
  expect((await createAt(service, { 'idempotency-key': 'one' })).status).toBe(201);
});

/** What others do in a transaction that stays open; the second needs no grant on anything. */
const OTHERS = {
  'a transaction that is left open after it inserted a row': insertUncommitted,
  'advisory locks on the number of the table': () =>
    other.query(
      `SELECT pg_advisory_lock('${TABLE}'::regclass::oid::int, n), pg_advisory_lock('${TABLE}'::regclass::oid::bigint)
       FROM generate_series(0, 9) AS n`,
    ),
};

test.each(Object.entries(OTHERS))('creates do not wait for %s, on any node', async (_name, hold) => {
  const node = await startService({ databaseUrl: service.databaseUrl });
  await other.query('BEGIN');
  await hold();
  const toHeaders = (n: number) => (n % 2 === 0 ? {} : { 'idempotency-key': crypto.randomUUID() });
  const created = await Promise.all(
    Array.from({ length: 40 }, (_, n) => createServed(n % 4 < 2 ? service : node, toHeaders(n))),
  );
  expect(created.map(({ status }) => status)).toEqual(Array(40).fill(201));
  await node.close();
});

test('a role without a grant on the turns can hold nobody up', async () => {
  const role = `holder_${process.pid}`;
  await other.query(`CREATE ROLE ${role}; GRANT SELECT ON ALL TABLES IN SCHEMA public TO ${role}`);
  try {
    await other.query(`SET ROLE ${role}`);
    for (const strength of ['UPDATE', 'NO KEY UPDATE', 'SHARE', 'KEY SHARE'])
      await expect(other.query(`SELECT FROM insert_turns FOR ${strength}`)).rejects.toThrow(
        'permission denied',
      );
    for (const mode of ['ROW EXCLUSIVE', 'EXCLUSIVE', 'ACCESS EXCLUSIVE'])
      await expect(other.query(`LOCK insert_turns IN ${mode} MODE`)).rejects.toThrow();
  } finally {
    await other.query(`RESET ROLE; DROP OWNED BY ${role}; DROP ROLE ${role}`);
  }
});

test('a table whose migration added no turn is a 500 whose cause the log names, and nothing is stored', async () => {
  await other.query(`DELETE FROM insert_turns WHERE table_name = '${TABLE}'`);
  for (const headers of [{}, { 'idempotency-key': 'one' }]) {
    expect((await createAt(service, headers)).status).toBe(500);
  }
  expect((await call(list.path)).body).toEqual([]);
});

test('a repetition that came while the first create waited for its turn gets the same item', async () => {
  const node = await startService({ databaseUrl: service.databaseUrl });
  await other.query('BEGIN');
  await other.query(TAKE_TURN);
  const all = ['one', 'two', 'three'].flatMap((key) =>
    [service, node].map((each) => createServed(each, { 'idempotency-key': key })),
  );
  await expect.poll(countWaiting, { interval: 5 }).toBe(1);
  await other.query('ROLLBACK');
  const responses = await Promise.all(all);
  expect(responses.map(({ status }) => status)).toEqual(Array(6).fill(201));
  for (let n = 0; n < 6; n += 2) expect(responses[n]?.body).toEqual(responses[n + 1]?.body);
  expect((await call(list.path)).body).toHaveLength(3);
  await node.close();
});
