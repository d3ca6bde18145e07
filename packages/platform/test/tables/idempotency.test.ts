import { randomUUID } from 'node:crypto';
import { execute, post, type TestResponse, toolCall } from '@animal-store/platform/testing';
import { expect, test } from 'vitest';
import {
  create,
  createItemStore,
  type Item,
  type ItemStore,
  itemSchema,
  list,
  newItem,
  newItemSchema,
  resources,
  TABLE,
  TEXT,
} from '#operations-under-test';
import { createProcedure } from '../../src/operations/builder.js';
import type { Resource } from '../../src/operations/resource.js';
import { deleteExpiredCreates, deleteExpiredSql } from '../../src/tables/idempotency.js';
import { BEGIN_FOR_LONG } from '../support/begin-for-long.js';
import { holdCreate } from '../support/hold-create.js';
import { useService } from '../support/test-service.js';

/** A second operation that takes an Idempotency-Key, with the same input as the create. */
const createTwin = createProcedure<{ readonly twins: ItemStore }>()
  .meta({
    openapi: { method: 'POST', path: '/twins', summary: 'Add a twin' },
    stability: 'beta',
    scope: create.scope,
    success: { status: 201, location: ({ id }: Item) => `/twins/${id}` },
    idempotent: true,
  })
  .input(newItemSchema)
  .output(itemSchema)
  .mutation(({ ctx, input }) => ctx.once((key) => ctx.twins.create(input, key)));
const twins: Resource<ItemStore> = {
  name: 'twins',
  description: 'Twins',
  createStore: createItemStore,
  procedures: { createTwin },
};

/** Of the node, 25 hours ahead of the database's */
const now = () => Date.now() + 25 * 60 * 60 * 1000;

const { call, service } = useService({ now, resources: [...resources, twins] });

const body = (name: string) => JSON.stringify(newItem(name));
/** The same JSON with its members in another order. */
const reversed = (json: string) =>
  JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(json)).reverse()));

function createWith(key: string, text: string, init: { key?: string } = {}): Promise<TestResponse> {
  return call(create.path, { ...post(text, { 'idempotency-key': key }), ...init });
}

async function countItems(name: string): Promise<number> {
  const { rows } = await service.database.pool.query(
    `SELECT count(*)::int AS n FROM ${TABLE} WHERE ${TEXT} = $1`,
    [name],
  );
  return rows[0].n;
}

test('the same key with the same body returns the stored response and creates nothing', async () => {
  const key = randomUUID();
  const first = await createWith(key, body('Once'));
  const second = await createWith(key, body('Once'));
  expect([first.status, second.status]).toEqual([201, 201]);
  expect(second.body).toEqual(first.body);
  expect(second.headers.get('location')).toBe(first.headers.get('location'));
  expect(first.headers.get('idempotency-replayed')).toBeNull();
  expect(second.headers.get('idempotency-replayed')).toBe('true');
  expect(await countItems('Once')).toBe(1);
});

test('the stored response is repeated even after the item was changed or deleted', async () => {
  const key = randomUUID();
  const first = await createWith(key, body('Renamed later'));
  await service.database.pool.query(`UPDATE ${TABLE} SET ${TEXT} = $1 WHERE id = $2`, [
    'Other',
    first.body.id,
  ]);
  expect((await createWith(key, body('Renamed later'))).body).toEqual(first.body);
  await service.database.pool.query(`DELETE FROM ${TABLE} WHERE id = $1`, [first.body.id]);
  expect((await createWith(key, body('Renamed later'))).body).toEqual(first.body);
});

test('the same key with another body is a 422, and only the same bytes are the same body', async () => {
  const key = randomUUID();
  await createWith(key, body('Bytes'));
  for (const text of [body('Other'), `${body('Bytes')} `, reversed(body('Bytes'))]) {
    const { status, body: error } = await createWith(key, text);
    expect([status, error.code]).toEqual([422, 'idempotency_key_reused']);
  }
  expect((await createWith(key, body('Bytes'))).headers.get('idempotency-replayed')).toBe('true');
});

test('an idempotency key belongs to an API key: another API key may use it too', async () => {
  const shared = randomUUID();
  const other = await service.keys.create({
    name: 'other',
    plan: 'free',
    perMinute: null,
    perDay: null,
    expiresAt: null,
  });
  const mine = await createWith(shared, body('Mine'));
  const theirs = await createWith(shared, body('Theirs'), { key: other.key });
  expect([theirs.status, theirs.headers.get('idempotency-replayed')]).toEqual([201, null]);
  expect(theirs.body.id).not.toBe(mine.body.id);
});

test('an idempotency key belongs to an operation: another operation may use it too', async () => {
  const key = randomUUID();
  const first = await createWith(key, body('Per operation'));
  const createTwin = () => call('/v1/twins', post(body('Per operation'), { 'idempotency-key': key }));
  const twin = await createTwin();
  expect([twin.status, twin.headers.get('idempotency-replayed')]).toEqual([201, null]);
  expect(twin.body.id).not.toBe(first.body.id);
  expect((await createTwin()).body).toEqual(twin.body);
  expect((await createWith(key, body('Per operation'))).body).toEqual(first.body);
});

test('20 parallel posts with one key create one item, and all return it', async () => {
  const key = randomUUID();
  const responses = await Promise.all(Array.from({ length: 20 }, () => createWith(key, body('Parallel'))));
  expect(responses.map(({ status }) => status)).toEqual(Array(20).fill(201));
  expect(new Set(responses.map((response) => response.body.id)).size).toBe(1);
  expect(responses.filter(({ headers }) => headers.get('idempotency-replayed') === null)).toHaveLength(1);
  expect(await countItems('Parallel')).toBe(1);
});

test('while the first is running, the second is a 409, or gets the same response if the first ends in time', async () => {
  const key = randomUUID();
  const first = await service.database.pool.connect();
  const { rows } = await first.query('SELECT id FROM api_keys WHERE name = $1', ['test']);
  await first.query(BEGIN_FOR_LONG);
  await holdCreate(first, { apiKeyId: rows[0].id, operation: create.name, value: key });
  await first.query(
    `INSERT INTO idempotent_creates (api_key_id, key, operation, batch_index, body_hash, response, created_at)
     VALUES ($1, $2, '${create.name}', 0, sha256($3), $4, now())`,
    [rows[0].id, key, Buffer.from(body('Slow')), JSON.stringify({ id: 77, ...newItem('Slow') })],
  );
  const meanwhile = await createWith(key, body('Slow'));
  expect([meanwhile.status, meanwhile.body.code]).toEqual([409, 'idempotency_key_in_use']);
  const waiting = createWith(key, body('Slow'));
  await first.query('COMMIT');
  first.release();
  const { status, body: item, headers } = await waiting;
  expect([status, item.id, headers.get('idempotency-replayed')]).toEqual([201, 77, 'true']);
  expect(await countItems('Slow')).toBe(0);
});

test('requests that wait for a first create do not keep others from being served', async () => {
  const key = randomUUID();
  const first = await service.database.pool.connect();
  const { rows } = await first.query('SELECT id FROM api_keys WHERE name = $1', ['test']);
  await first.query(BEGIN_FOR_LONG);
  await holdCreate(first, { apiKeyId: rows[0].id, operation: create.name, value: key });
  const waiting = Array.from({ length: 40 }, () => createWith(key, body('Crowd')));
  const others = await Promise.all(Array.from({ length: 20 }, () => call(list.path)));
  expect(others.map(({ status }) => status)).toEqual(Array(20).fill(200));
  expect(new Set((await Promise.all(waiting)).map(({ status }) => status))).toEqual(new Set([409]));
  await first.query('ROLLBACK');
  first.release();
  expect((await createWith(key, body('Crowd'))).status).toBe(201);
});

test('only successful creates are remembered', async () => {
  const key = randomUUID();
  expect((await createWith(key, body(''))).status).toBe(400);
  expect((await createWith(key, '{')).status).toBe(400);
  const { status, headers } = await createWith(key, body('At last'));
  expect([status, headers.get('idempotency-replayed')]).toEqual([201, null]);
});

test('an item and its key are stored together or not at all', async () => {
  const { pool } = service.database;
  await pool.query('ALTER TABLE idempotent_creates ADD CONSTRAINT broken CHECK (false) NOT VALID');
  const key = randomUUID();
  expect((await createWith(key, body('Neither'))).status).toBe(500);
  expect(await countItems('Neither')).toBe(0);
  await pool.query('ALTER TABLE idempotent_creates DROP CONSTRAINT broken');
  expect((await createWith(key, body('Neither'))).status).toBe(201);
  expect(await countItems('Neither')).toBe(1);
});

test('a malformed key is a 400 over both protocols', async () => {
  for (const key of ['', ' ', 'two words', 'x'.repeat(256), 'tab\tbed', 'ümlaut']) {
    const headers = { 'content-type': 'application/json', 'idempotency-key': key };
    for (const path of [create.path, create.trpc]) {
      const { status, body: response } = await call(path, { ...post(body('Malformed')), headers });
      expect([key, status]).toEqual([key, 400]);
      expect((path === create.path ? response : response.error.data.error).message).toMatch(
        /Idempotency-Key/,
      );
    }
  }
  expect(await countItems('Malformed')).toBe(0);
  expect((await createWith('!'.repeat(255), body('Longest'))).status).toBe(201);
});

/** As if so much time had passed since the creates of this file. */
async function age(interval: string): Promise<void> {
  await service.database.pool.query(
    `UPDATE idempotent_creates SET created_at = created_at - interval '${interval}'`,
  );
}

test('a key is remembered for 24 hours by the clock of the database, and can be reused from then on', async () => {
  const key = randomUUID();
  const first = await createWith(key, body('Daily'));
  await age('23:59');
  expect((await createWith(key, body('Daily'))).body).toEqual(first.body);
  await age('00:01');
  const next = await createWith(key, body('Another day'));
  expect([next.status, next.headers.get('idempotency-replayed')]).toEqual([201, null]);
});

test('only keys that have expired by the clock of the database are deleted', async () => {
  const { pool } = service.database;
  await pool.query('DELETE FROM idempotent_creates');
  await createWith(randomUUID(), body('Old'));
  await age('12:00');
  const fresh = randomUUID();
  await createWith(fresh, body('Fresh'));
  await age('12:00');
  await deleteExpiredCreates(service.database);
  const { rows } = await pool.query('SELECT key FROM idempotent_creates');
  expect(rows).toEqual([{ key: fresh }]);
});

test('any number of expired keys are deleted, a thousand per statement, however many nodes do so at once', async () => {
  const { pool } = service.database;
  const countExpired = async () => {
    const { rows } = await pool.query(
      "SELECT count(*)::int FROM idempotent_creates WHERE key LIKE 'expired-%'",
    );
    return rows[0].count;
  };
  // Not by the service's pool, whose statements end after 1.2 s.
  await execute(
    service.databaseUrl,
    `INSERT INTO idempotent_creates (api_key_id, key, operation, batch_index, body_hash, response, created_at)
     SELECT id, 'expired-' || n, '${create.name}', 0, decode(repeat('00', 32), 'hex'), '{}', '2020-01-01'
     FROM (SELECT id FROM api_keys LIMIT 1) AS owner, generate_series(1, 5500) AS n`,
  );
  expect((await pool.query(deleteExpiredSql(service.database.inSchema))).rowCount).toBe(1_000);
  await Promise.all([deleteExpiredCreates(service.database), deleteExpiredCreates(service.serviceDatabase)]);
  expect(await countExpired()).toBe(0);
});

test('expired keys are found by an index and deleted by their address, without reading the others', async () => {
  const explain = `SET LOCAL enable_seqscan = off; EXPLAIN ${deleteExpiredSql(service.database.inSchema)}`;
  const results: unknown = await service.database.pool.query(explain);
  const plan = JSON.stringify((results as { rows: unknown }[]).at(-1)?.rows);
  expect(plan).toContain('Tid Scan on idempotent_creates');
  expect(plan).toMatch(/Index Scan (?:using|on) idempotent_creates_created_at_idx/);
  expect(plan).not.toContain('Seq Scan');
});

test('the header works over every protocol, and a key belongs to the one that it was first used over', async () => {
  const send: readonly ((key: string) => ReturnType<typeof call>)[] = [
    (key) => createWith(key, body('Any')),
    (key) => call(create.trpc, post(body('Any'), { 'idempotency-key': key })),
    (key) => call('/mcp', toolCall(create.name, JSON.parse(body('Any')), { 'idempotency-key': key })),
  ];
  for (const first of send) {
    const key = randomUUID();
    const created = await first(key);
    expect(created.headers.has('idempotency-replayed')).toBe(false);
    const before = await countItems('Any');
    const repeated = await first(key);
    expect([repeated.status, repeated.headers.get('idempotency-replayed')]).toEqual([created.status, 'true']);
    // The same bytes are in the body, or in the arguments.
    for (const other of send.filter((each) => each !== first)) {
      const { body: refused } = await other(key);
      const error = refused.error?.data.error ?? refused.result?.structuredContent ?? refused;
      expect(error.code).toBe('idempotency_key_reused');
    }
    expect(await countItems('Any')).toBe(before);
  }
});

test('each create of a batch is remembered under the shared key', async () => {
  const key = randomUUID();
  const batch = JSON.stringify({ 0: newItem('Twin'), 1: newItem('Twin') });
  const send = () => call(`${create.trpc},${create.name}?batch=1`, post(batch, { 'idempotency-key': key }));
  const first = await send();
  const ids = first.body.map(({ result }: { result: { data: { id: number } } }) => result.data.id);
  expect(new Set(ids).size).toBe(2);
  const second = await send();
  expect(second.body).toEqual(first.body);
  expect(second.headers.get('idempotency-replayed')).toBe('true');
  expect(await countItems('Twin')).toBe(2);
});

test('a streamed batch also reports that it was replayed', async () => {
  const init = post(JSON.stringify({ 0: newItem('Stream') }), {
    'idempotency-key': randomUUID(),
    'trpc-accept': 'application/jsonl',
    authorization: `Bearer ${service.key}`,
  });
  const send = () => fetch(`${service.url}${create.trpc}?batch=1`, init);
  const first = await send();
  const second = await send();
  expect([first.headers.get('idempotency-replayed'), second.headers.get('idempotency-replayed')]).toEqual([
    null,
    'true',
  ]);
  expect(await second.text()).toContain('"Stream"');
  expect(await countItems('Stream')).toBe(1);
});

test('a batch that creates anything is not reported as replayed', async () => {
  const key = randomUUID();
  const batch = JSON.stringify({ 0: newItem('Half'), 1: newItem('Half') });
  const send = () => call(`${create.trpc},${create.name}?batch=1`, post(batch, { 'idempotency-key': key }));
  await send();
  await service.database.pool.query('DELETE FROM idempotent_creates WHERE key = $1 AND batch_index = 1', [
    key,
  ]);
  expect((await send()).headers.get('idempotency-replayed')).toBeNull();
  expect((await send()).headers.get('idempotency-replayed')).toBe('true');
});

test.each(['application/json', 'application/jsonl'])(
  'a batch of which a call failed is not reported as replayed, as %s',
  async (accepted) => {
    const headers = { 'idempotency-key': randomUUID(), 'trpc-accept': accepted };
    const invalid = newItem('');
    const batch = JSON.stringify({
      0: newItem(accepted),
      1: invalid,
      2: newItem(accepted),
    });
    const init = post(batch, { ...headers, authorization: `Bearer ${service.key}` });
    const send = () => fetch(`${service.url}${create.trpc},${create.name},${create.name}?batch=1`, init);
    for (const response of [await send(), await send()]) {
      expect(response.headers.get('idempotency-replayed')).toBeNull();
      expect(await response.text()).toContain('invalid_request');
    }
    expect(await countItems(accepted)).toBe(2);
  },
);

test('operations that are not idempotent ignore the header', async () => {
  expect((await call(list.path, { headers: { 'idempotency-key': 'not one' } })).status).toBe(200);
});

test('a create with an Idempotency-Key does not wait for its API key, which somebody has locked', async () => {
  const client = await service.database.pool.connect();
  try {
    await client.query('BEGIN');
    await client.query('SELECT FROM api_keys FOR UPDATE');
    expect((await createWith(randomUUID(), body('Beside a lock'))).status).toBe(201);
  } finally {
    await client.query('ROLLBACK');
    client.release();
  }
});
