import { type Caller, createCaller, post } from '@animal-store/platform/testing';
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { create, list, newItem, TABLE, TEXT } from '#operations-under-test';
import { generateKey } from '../../src/keys/format.js';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.js';
import { createTestDatabase, startService, type TestService } from '../support/test-service.js';

// What is answered during each failure, and after it, is in failures.test.ts.

let proxy: TcpProxy;
/** A connection to the same database that does not go through the proxy */
let direct: pg.Client;
let databaseUrl: string;
let service: TestService;
let call: Caller;

beforeEach(async () => {
  const url = new URL(await createTestDatabase());
  direct = new pg.Client(url.href);
  await direct.connect();
  proxy = await startTcpProxy({ host: url.hostname, port: Number(url.port) });
  url.port = String(proxy.port);
  databaseUrl = url.href;
  service = await startService({ databaseUrl });
  call = createCaller(service);
  expect((await call(list.path)).status).toBe(200);
});
afterEach(async () => {
  await service.close();
  await proxy.close();
  await direct.end();
});

test('requests that need no database are served while it is unavailable', async () => {
  await proxy.cut();
  expect((await call('/v1/nope')).status).toBe(404);
  expect((await call(list.path, { method: 'PROPFIND' })).status).toBe(405);
  expect((await call(list.path, { key: null })).body.code).toBe('missing_api_key');
  expect((await call(list.path, { key: 'nonsense' })).body.code).toBe('invalid_api_key');
});

test('an internal error is a 500 that shows the client nothing but the request id, over both protocols', async () => {
  await direct.query(`
    CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'lost ${TABLE}'; END $$;
    CREATE TRIGGER lose BEFORE INSERT ON ${TABLE} EXECUTE FUNCTION lose()`);
  for (const path of [create.path, create.trpc]) {
    const { status, headers, body } = await call(path, post(create.body, { 'x-request-id': 'my-id-1' }));
    const error = path.startsWith('/trpc') ? body.error.data.error : body;
    expect([status, error.code, error.status]).toEqual([500, 'internal_error', 500]);
    expect(headers.get('x-request-id')).toBe('my-id-1');
    expect(JSON.stringify(body)).not.toMatch(/trigger|plpgsql|prisma|stack|lost/i);
  }
});

/** The server processes of the service's connections. */
async function listBackends(): Promise<number[]> {
  const { rows } = await direct.query<{ pid: number }>(
    'SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
  );
  return rows.map(({ pid }) => pid);
}

async function restartBackends(): Promise<void> {
  for (const pid of await listBackends()) await direct.query('SELECT pg_terminate_backend($1, 2000)', [pid]);
}

test('a failed key lookup counts against nobody: it reports the limits of the key, if that is known, and of no address', async () => {
  await service.close();
  service = await startService({ databaseUrl, anonymousPerMinute: 2 });
  call = createCaller(service);
  expect((await call(list.path)).status).toBe(200);
  const unknown = generateKey('by_test_');
  await proxy.cut();
  for (const path of [list.path, list.trpc, list.path]) {
    expect((await call(path, { key: unknown })).status).toBe(503);
    expect((await call(path, { key: unknown })).headers.has('x-ratelimit-limit')).toBe(false);
  }
  const remaining = async () => (await call(list.path)).headers.get('x-ratelimit-remaining');
  // For a second after its last lookup the key is trusted, and its requests count.
  const countBoth = async () => Number(await remaining()) - Number(await remaining());
  await expect.poll(countBoth).toBe(0);
  expect(Number(await remaining())).toBeGreaterThan(999_000);
  expect((await call(list.path, { key: null })).headers.get('x-ratelimit-remaining')).toBe('1');
});

test('backends stopped with SIGSTOP or killed during creates: a create retried with its key happens once', async () => {
  let unavailable = 0;
  const createOne = async (n: number): Promise<number> => {
    const init = post(newItem(`item ${n}`), { 'idempotency-key': `item-${n}` });
    for (let attempt = 0; attempt < 50; attempt += 1) {
      const { status, body } = await call(list.path, init);
      if (status === 201) return body.id;
      expect([409, 503]).toContain(status);
      if (status === 503) unavailable += 1;
    }
    throw new Error(`item ${n} could not be created`);
  };
  const stream = async (first: number) => {
    const ids: number[] = [];
    for (let n = first; n < 240; n += 8) ids.push(await createOne(n));
    return ids;
  };
  const streams = Promise.all(Array.from({ length: 8 }, (_, first) => stream(first)));
  const created = async () => Number((await direct.query(`SELECT count(*) FROM ${TABLE}`)).rows[0].count);
  await expect.poll(created, { interval: 20 }).toBeGreaterThan(40);
  const stopped = await listBackends();
  for (const pid of stopped) process.kill(pid, 'SIGSTOP');
  await expect.poll(() => unavailable).toBeGreaterThan(0);
  for (const pid of stopped) process.kill(pid, 'SIGCONT');
  await expect.poll(created, { interval: 20 }).toBeGreaterThan(120);
  await restartBackends();
  const ids = (await streams).flat();
  const { rows } = await direct.query(`SELECT id FROM ${TABLE} WHERE ${TEXT} LIKE 'item %'`);
  expect(rows.map(({ id }) => Number(id)).sort()).toEqual(ids.sort());
});

test('a connection returned to the pool inside a transaction is not reused: no create is acknowledged in it', async () => {
  const { pool } = service.database;
  const left = await pool.connect();
  await left.query('BEGIN');
  left.release();
  const { body, status } = await call(create.path, post(create.body));
  expect(status).toBe(201);
  expect((await direct.query(`SELECT 1 FROM ${TABLE} WHERE id = $1`, [body.id])).rows).toHaveLength(1);
});
