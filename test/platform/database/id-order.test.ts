import pg from 'pg';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { create, INSERT_OTHERS, insertSql, list, TABLE } from '../../support/operations-under-test.js';
import {
  type Caller,
  createCaller,
  post,
  startService,
  type TestService,
} from '../../support/test-service.js';
import { until } from '../../support/until.js';

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
  const { rows } = await other.query(`${insertSql("'Uncommitted'")} RETURNING id::int`);
  return rows[0].id;
}

/** How many transactions wait for their turn. */
async function countWaiting(): Promise<number> {
  const { rows } = await service.database.pool.query(
    `SELECT count(*)::int AS waiting FROM pg_locks
     WHERE locktype = 'advisory' AND NOT granted
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
  );
  return rows[0].waiting;
}

test.each([
  ['without an Idempotency-Key', () => ({})],
  ['with one', () => ({ 'idempotency-key': crypto.randomUUID() })],
])('an item becomes visible after those with lower ids, whoever adds them: %s', async (_name, headers) => {
  const first = await insertUncommitted();
  const creating = call(create.path, post(create.body, headers()));
  await expect.poll(countWaiting, { interval: 5 }).toBe(1);
  expect((await call(list.path)).body).toEqual([]);
  await other.query('COMMIT');
  const { status, body } = await creating;
  expect([status, body.id > first]).toEqual([201, true]);
  expect((await call(list.path)).body.map(({ id }: { id: number }) => id)).toEqual([first, body.id]);
});

test('an item that is added by SQL takes its turn, too, and does not wait for those of other tables', async () => {
  await insertUncommitted();
  await other.query('COMMIT');
  await other.query('BEGIN');
  await other.query(INSERT_OTHERS);
  const own = service.database.pool.query(`${insertSql("'By SQL'")} RETURNING id`);
  expect((await own).rowCount).toBe(1);
  await other.query('ROLLBACK');
  await insertUncommitted();
  const waiting = service.database.pool.query(insertSql("'By SQL'"));
  await expect.poll(countWaiting, { interval: 5 }).toBe(1);
  await other.query('ROLLBACK');
  expect((await waiting).rowCount).toBe(1);
});

/** Ways to hold the turn of a table for as long as one likes; the second needs no grant on anything. */
const HOLDERS = {
  'a transaction that is left open after it inserted one': insertUncommitted,
  'an advisory lock on the same number': () =>
    other.query(`SELECT pg_advisory_lock('${TABLE}'::regclass::oid::int, 0)`),
};

test.each(Object.entries(HOLDERS))(
  'animals are added beside %s, by every node, and only once waited for',
  async (_name, hold) => {
    const node = await startService({ databaseUrl: service.databaseUrl });
    await hold();
    const createOne = async (n: number) => {
      const caller = createCaller({ ...(n % 4 < 2 ? service : node), key: service.key });
      const headers = n % 2 === 0 ? {} : { 'idempotency-key': crypto.randomUUID() };
      const { status, body } = await caller(create.path, post(create.body, headers));
      expect(status).toBe(201);
      return body.id as number;
    };
    const created = await Promise.all(Array.from({ length: 40 }, (_, n) => createOne(n)));
    expect(new Set(created).size).toBe(40);
    expect(await countWaiting()).toBe(0);
    for (let n = 0; n < 4; n += 1) await createOne(n);
    const { rows } = await service.database.pool.query(`SELECT last_value::int FROM ${TABLE}_turns`);
    // On a busy machine others may have held a turn for too long as well.
    expect(rows[0].last_value).toBeGreaterThanOrEqual(1);
    const metrics = await (await fetch(`${service.url}/metrics`)).text();
    const others = await (await fetch(`${node.url}/metrics`)).text();
    const count = (text: string) =>
      Number(/^animal_store_database_turns_given_up_total (\d+)$/m.exec(text)?.[1]);
    expect(count(metrics) + count(others)).toBeGreaterThanOrEqual(1);
    await node.close();
  },
);

test('those who no longer wait for a turn take turns among themselves, and with whoever comes to the old one', async () => {
  const third = new pg.Client(service.databaseUrl);
  await third.connect();
  onTestFinished(() => third.end());
  const insert = async (client: pg.Client) =>
    (await client.query(`${insertSql("'By SQL'")} RETURNING id::int`)).rows[0].id;
  // On a busy machine a round may take so long that its turn is given up, too.
  await until(async () => {
    await insertUncommitted();
    await third.query('BEGIN');
    const first = await insert(third);
    const heldSince = performance.now();
    const creating = call(create.path, post(create.body));
    const waiting = [creating.then(({ body }) => body.id), other.query('COMMIT').then(() => insert(other))];
    await until(async () =>
      (await countWaiting()) === 2 || performance.now() - heldSince > 300 ? true : undefined,
    );
    const isInTime = performance.now() - heldSince < 300;
    const seen = await service.items.list({ limit: 100, cursor: first });
    await third.query('COMMIT');
    const ids = await Promise.all(waiting);
    if (!isInTime) return undefined;
    expect(seen).toEqual([]);
    expect(Math.min(...ids)).toBeGreaterThan(first);
    return true;
  });
});

test('a repetition that waited for its turn while the first create ended gets the same item', async () => {
  const node = await startService({ databaseUrl: service.databaseUrl });
  const createAt = (to: TestService, key: string) =>
    createCaller({ ...to, key: service.key })(create.path, post(create.body, { 'idempotency-key': key }));
  await insertUncommitted();
  const all = ['one', 'two', 'three'].flatMap((key) => [createAt(service, key), createAt(node, key)]);
  await expect.poll(countWaiting, { interval: 5 }).toBeGreaterThan(1);
  await other.query('ROLLBACK');
  const responses = await Promise.all(all);
  expect(responses.map(({ status }) => status)).toEqual(Array(6).fill(201));
  for (let n = 0; n < 6; n += 2) expect(responses[n]?.body).toEqual(responses[n + 1]?.body);
  expect((await call(list.path)).body).toHaveLength(3);
  await node.close();
});
