import pg from 'pg';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { generateKey } from '../../../src/platform/keys/format.js';
import { listEveryCall, nameOf } from '../../support/every-call.js';
import { expectErrorBody, expectMcpErrorBody } from '../../support/expect-error-body.js';
import { oldToolCall, toolCall } from '../../support/mcp.js';
import { create, list, newItem, otherList, read, TABLE, TEXT } from '../../support/operations-under-test.js';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.js';
import {
  type Caller,
  createCaller,
  createTestDatabase,
  post,
  startService,
  type TestService,
} from '../../support/test-service.js';

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

async function expectUnavailable(path: string, init: RequestInit = {}): Promise<void> {
  const { status, headers, body } = await call(path, init);
  expect([path, status, headers.get('retry-after')]).toEqual([path, 503, '1']);
  const error = path.startsWith('/trpc') ? body.error.data.error : body;
  expectErrorBody(error, 'service_unavailable');
}

/** Admission responds if even the key cannot be looked up; else it is the error of the tool, as a result. */
async function expectToolUnavailable(init: RequestInit): Promise<void> {
  const { status, headers, body } = await call('/mcp', init);
  if (status !== 200) {
    expect([status, headers.get('retry-after')]).toEqual([503, '1']);
    return expectMcpErrorBody(body, 'service_unavailable');
  }
  const error = { code: 'service_unavailable', status: 503, retryAfterSeconds: 1 };
  expect(body.result).toMatchObject({ isError: true, structuredContent: error });
}

test.each(['cut', 'stall'] as const)(
  'PostgreSQL unavailable (%s): 503 over all protocols, readiness reports it, and it recovers by itself',
  async (breakConnections) => {
    const { key, apiKey } = await service.keys.create({ name: 'endable', plan: 'pro' });
    const calls = await listEveryCall(call, { key, hint: apiKey.hint });
    await proxy[breakConnections]();
    await expectUnavailable(list.path);
    const outcomes = calls.map(async (each) => [nameOf(each), await each.send(call)]);
    expect(await Promise.all(outcomes)).toEqual(calls.map((each) => [nameOf(each), 503]));
    await Promise.all([
      expectUnavailable(read.pathOf(1)),
      expectUnavailable(create.path, post(create.body)),
      expectUnavailable(list.trpc),
      expectUnavailable(create.trpc, post(create.body)),
      expectToolUnavailable(toolCall(list.name)),
      expectToolUnavailable(oldToolCall(create.name, create.body)),
    ]);
    expect((await call('/health/ready', { key: null })).status).toBe(503);
    expect((await call('/health/live', { key: null })).status).toBe(200);
    await proxy.restore();
    await expect.poll(async () => (await call(list.path)).status).toBe(200);
    expect((await call('/health/ready', { key: null })).status).toBe(200);
  },
);

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

test('PostgreSQL read-only: reads are served, creates get a 503 over both protocols, and it recovers by itself', async () => {
  const name = direct.database;
  await direct.query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
  await restartBackends();
  await expect.poll(async () => (await call(list.path)).status).toBe(200);
  await expectUnavailable(create.path, post(create.body));
  await expectUnavailable(create.path, post(create.body, { 'idempotency-key': 'read-only' }));
  await expectUnavailable(create.trpc, post(create.body));
  expect((await call(list.trpc)).status).toBe(200);
  await direct.query(`ALTER DATABASE ${name} RESET default_transaction_read_only`);
  await restartBackends();
  const createAgain = async () =>
    (await call(create.path, post(create.body, { 'idempotency-key': 'read-only' }))).status;
  await expect.poll(createAgain).toBe(201);
});

test('PostgreSQL without a free connection: 503 over both protocols, and it recovers by itself', async () => {
  const role = `${direct.database}_few`;
  await direct.query(`CREATE ROLE ${role} LOGIN PASSWORD 'few' CONNECTION LIMIT 0 IN ROLE pg_read_all_data`);
  const url = new URL(`postgresql://${role}:few@127.0.0.1:${proxy.port}/${direct.database}?sslmode=disable`);
  const poor = await startService({ databaseUrl: url.href }).catch((error: Error) => error);
  expect(String(poor)).toMatch(/too many connections/i);
  await direct.query(
    `GRANT INSERT ON ALL TABLES IN SCHEMA public TO ${role}; ALTER ROLE ${role} CONNECTION LIMIT 10`,
  );
  await service.close();
  service = await startService({ databaseUrl: url.href });
  call = createCaller(service);
  expect((await call(list.path)).status).toBe(200);
  await direct.query(`ALTER ROLE ${role} CONNECTION LIMIT 0`);
  await restartBackends();
  await expectUnavailable(list.path);
  await expectUnavailable(list.trpc);
  await direct.query(`ALTER ROLE ${role} CONNECTION LIMIT 10`);
  await expect.poll(async () => (await call(list.path)).status).toBe(200);
});

test('a database that is closed to connections before a failover: 503 over both protocols, and it recovers by itself', async () => {
  const other = new pg.Client(inject('postgresUrl'));
  await other.connect();
  await direct.end();
  await other.query(`ALTER DATABASE ${direct.database} ALLOW_CONNECTIONS false`);
  await other.query('SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity WHERE datname = $1', [
    direct.database,
  ]);
  await expectUnavailable(list.path);
  await expectUnavailable(otherList.path);
  await expectUnavailable(create.path, post(create.body, { 'idempotency-key': 'closed' }));
  await expectUnavailable(create.trpc, post(create.body));
  await other.query(`ALTER DATABASE ${direct.database} ALLOW_CONNECTIONS true`);
  await other.end();
  await expect.poll(async () => (await call(list.path)).status).toBe(200);
});

test('a failed key lookup counts against nobody: it reports the limits of the key, if that is known, and of no address', async () => {
  await service.close();
  service = await startService({ databaseUrl, anonymousPerMinute: 2 });
  call = createCaller(service);
  expect((await call(list.path)).status).toBe(200);
  const unknown = generateKey('as_test_');
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
