import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { expectErrorBody } from '../support/expect-error-body.js';
import { type Caller, createCaller, post, startService, type TestService } from '../support/test-service.js';

const rex = { name: 'Rex', categoryId: 1 };

let service: TestService;
let call: Caller;
/** Has inserted a row, by whatever tool, and has not committed it. */
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

async function insertUncommitted(): Promise<number> {
  await other.query('BEGIN');
  const { rows } = await other.query(
    `INSERT INTO pets (name, category_id) VALUES ('Uncommitted', 1) RETURNING id::int`,
  );
  return rows[0].id;
}

/** How many transactions wait for their turn. */
async function countWaiting(): Promise<number> {
  const { rows } = await other.query(
    `SELECT count(*)::int AS waiting FROM pg_locks
     WHERE locktype = 'advisory' AND NOT granted
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
  );
  return rows[0].waiting;
}

test.each([
  ['without an Idempotency-Key', () => ({})],
  ['with one', () => ({ 'idempotency-key': crypto.randomUUID() })],
])('a pet becomes visible after those with lower ids, whoever adds them: %s', async (_name, headers) => {
  const first = await insertUncommitted();
  const creating = call('/v1/pets', post(rex, headers()));
  await expect.poll(countWaiting, { interval: 5 }).toBe(1);
  expect((await call('/v1/pets')).body).toEqual([]);
  await other.query('COMMIT');
  const { status, body } = await creating;
  expect([status, body.id > first]).toEqual([201, true]);
  expect((await call('/v1/pets')).body.map(({ id }: { id: number }) => id)).toEqual([first, body.id]);
});

test('a pet that is added by SQL takes its turn, too, and does not wait for those of other tables', async () => {
  const first = await insertUncommitted();
  await other.query('COMMIT');
  await other.query('BEGIN');
  await other.query('INSERT INTO orders (pet_id, quantity) VALUES ($1, 1)', [first]);
  const own = service.database.pool.query(
    `INSERT INTO pets (name, category_id) VALUES ('By SQL', 1) RETURNING id`,
  );
  expect((await own).rowCount).toBe(1);
  await other.query('ROLLBACK');
  await insertUncommitted();
  const waiting = service.database.pool.query(`INSERT INTO pets (name, category_id) VALUES ('By SQL', 1)`);
  await expect.poll(countWaiting, { interval: 5 }).toBe(1);
  await other.query('ROLLBACK');
  expect((await waiting).rowCount).toBe(1);
});

test('a create whose turn does not come is a 503, and is not stored afterwards', async () => {
  await insertUncommitted();
  const { status, headers, body } = await call('/v1/pets', post(rex));
  expect([status, headers.get('retry-after')]).toEqual([503, '1']);
  expectErrorBody(body, 'service_unavailable');
  await other.query('ROLLBACK');
  expect((await call('/v1/pets')).body).toEqual([]);
  expect((await call('/v1/pets', post(rex))).status).toBe(201);
});

test('a repetition that waited for its turn while the first create ended gets the same pet', async () => {
  const node = await startService({ databaseUrl: service.databaseUrl });
  const create = (to: TestService, key: string) =>
    createCaller({ ...to, key: service.key })('/v1/pets', post(rex, { 'idempotency-key': key }));
  await insertUncommitted();
  const all = ['one', 'two', 'three'].flatMap((key) => [create(service, key), create(node, key)]);
  await expect.poll(countWaiting, { interval: 5 }).toBeGreaterThan(1);
  await other.query('ROLLBACK');
  const responses = await Promise.all(all);
  expect(responses.map(({ status }) => status)).toEqual(Array(6).fill(201));
  for (let n = 0; n < 6; n += 2) expect(responses[n]?.body).toEqual(responses[n + 1]?.body);
  expect((await call('/v1/pets')).body).toHaveLength(3);
  await node.close();
});
