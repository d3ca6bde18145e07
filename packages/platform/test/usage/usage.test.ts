import { randomUUID } from 'node:crypto';
import {
  createCaller,
  type Environment,
  execute,
  message,
  oldToolCall,
  post,
  readJson,
  rpcPath,
  runNode,
  toolCall,
  untilListening,
} from '@animal-store/platform/testing';
import pg from 'pg';
import { afterEach, expect, test, vi } from 'vitest';
import { create, definition, list, otherList, read, resources } from '#operations-under-test';
import { type Database, openDatabase } from '../../src/connections/client.js';
import { createKeyStore } from '../../src/keys/store.js';
import { listOperations } from '../../src/operations/list-operations.js';
import { createRouter } from '../../src/operations/resource.js';
import { flushRegularly, UsageCounter } from '../../src/usage/counter.js';
import { createUsageStore, lastDays, type NewUsage, toDay } from '../../src/usage/store.js';
import { deprecated } from '../support/deprecated.js';
import { run, runInProcess, runKeys } from '../support/process.js';
import { asService } from '../support/service-role.js';
import { startTcpProxy } from '../support/tcp-proxy.js';
import { createTestDatabase, startService } from '../support/test-service.js';

const DAY_MS = 86_400_000;
const WITH_DEPRECATED = 'packages/platform/test/support/with-deprecated.ts';
const listed = listOperations(createRouter([...resources, deprecated.resource]));
const operations = listed.map(({ name }) => name);
const plain = { name: 'a key', plan: 'free', perMinute: null, perDay: null, expiresAt: null } as const;
const warn = () => {};

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

function open(url: string): Database {
  const database = openDatabase(asService(url), () => {}, definition);
  closing.push(() => database.close());
  return database;
}

async function prepare() {
  const url = await createTestDatabase();
  const database = open(url);
  const store = createUsageStore(database);
  const keys = createKeyStore(database, 'by_test_', definition.scopes);
  const { apiKey } = await keys.create(plain);
  return { url, database, store, keys, id: apiKey.id };
}

/** Runs `keys usage` of a command line that knows the deprecated operation. */
const runUsage = (environment: Environment, ...args: (string | undefined)[]) =>
  runInProcess(['keys', 'usage', ...args.map(String)], environment, {
    furtherResources: [deprecated.resource],
  });

const printUsage = async (environment: Environment, ...args: (string | undefined)[]) =>
  (await runUsage(environment, ...args)).output;

const readUsage = async (environment: Environment, ...args: (string | undefined)[]) =>
  readJson(await runUsage(environment, ...args, '--json'));

/** As usage is listed: the newest day first, and the operations of a day by their names. */
const inOrder = <Row extends { readonly day: string; readonly operation: string }>(rows: readonly Row[]) =>
  rows.toSorted((one, other) =>
    one.day === other.day ? (one.operation < other.operation ? -1 : 1) : one.day < other.day ? 1 : -1,
  );

test('admitted requests are counted over all protocols, per operation and UTC day, and each call of a batch separately', async () => {
  const databaseUrl = await createTestDatabase();
  const store = createUsageStore(open(databaseUrl));
  let now = Date.parse('2026-11-19T23:59:59.999Z');
  const usage = new UsageCounter({ store, operations, now: () => now, warn });
  const service = await startService({ databaseUrl, usage });
  closing.push(service.close);
  const [apiKey] = await service.keys.list();
  const call = createCaller(service);
  await call(list.path);
  await call(list.path, { method: 'HEAD' });
  await call(create.path, post(create.body));
  await call(create.path, post('{'));
  await call(read.pathOf(1));
  now += 1;
  await call(rpcPath(read.name, read.inputOf(1)));
  await call(`${read.trpc},${read.name},${otherList.name},invented?batch=1&input={}`);
  for (const toCall of [toolCall, oldToolCall]) await call('/mcp', toCall(otherList.name, { limit: 0 }));
  // None of these was admitted with a key, or is of an operation
  await call('/mcp', message('tools/list'));
  await call('/mcp', toolCall('invented'));
  await call('/mcp', { ...oldToolCall(otherList.name), key: null });
  await call(list.path, { key: null });
  await call(list.path, { method: 'DELETE' });
  await call('/v1/nowhere');
  await call(`/trpc/${Array(21).fill(read.name).join(',')}?batch=1`);
  await usage.close();
  expect(await store.read(apiKey?.id ?? '', lastDays(now))).toEqual(
    inOrder([
      { day: '2026-11-20', operation: read.name, requests: 3, denied: 0 },
      { day: '2026-11-20', operation: otherList.name, requests: 3, denied: 0 },
      { day: '2026-11-19', operation: create.name, requests: 2, denied: 0 },
      { day: '2026-11-19', operation: read.name, requests: 1, denied: 0 },
      { day: '2026-11-19', operation: list.name, requests: 2, denied: 0 },
    ]),
  );
});

test('what a limit or a ban denies is counted apart, over both protocols, and each call of a batch separately', async () => {
  const databaseUrl = await createTestDatabase();
  const store = createUsageStore(open(databaseUrl));
  const usage = new UsageCounter({ store, operations, now: Date.now, warn });
  const service = await startService({ databaseUrl, usage });
  closing.push(service.close);
  const limits = { plan: 'enterprise', perMinute: 3, perDay: 100 } as const;
  const { key, apiKey } = await service.keys.create({ ...plain, ...limits });
  const call = createCaller({ url: service.url, key });
  const codes: unknown[] = [];
  const send = async (path: string, init?: RequestInit) => {
    const { status, body } = await call(path, init);
    codes.push(status === 200 ? 200 : (body.code ?? body.error.data.error.code));
  };
  for (let n = 0; n < 4; n += 1) await send(list.path);
  await send(`${list.trpc},${read.name},invented?batch=1&input={}`);
  await send(create.path, post(create.body));
  // These are not of an operation, whether or not they were denied
  await send('/v1/nowhere');
  await send(list.path, { method: 'DELETE' });
  expect(codes).toEqual([
    ...[200, 200, 200, 'rate_limit_exceeded', 'rate_limit_exceeded', 'api_key_banned'],
    ...['not_found', 'method_not_allowed'],
  ]);
  await usage.close();
  const now = Date.now();
  const day = new Date(now).toISOString().slice(0, 10);
  expect(await store.read(apiKey.id, lastDays(now))).toEqual(
    inOrder([
      { day, operation: create.name, requests: 0, denied: 1 },
      { day, operation: read.name, requests: 0, denied: 1 },
      { day, operation: list.name, requests: 3, denied: 2 },
    ]),
  );
});

test('what is denied over MCP is counted, too, by the name of the tool or, where only the body has it, as mcp', async () => {
  const databaseUrl = await createTestDatabase();
  const store = createUsageStore(open(databaseUrl));
  const service = await startService({ databaseUrl });
  const limits = { plan: 'enterprise', perMinute: 2, perDay: 100 } as const;
  const { key, apiKey } = await service.keys.create({ ...plain, ...limits });
  const call = createCaller({ url: service.url, key });
  const statuses: number[] = [];
  for (const send of [oldToolCall, oldToolCall, oldToolCall, toolCall])
    statuses.push((await call('/mcp', send(list.name))).status);
  expect(statuses).toEqual([200, 200, 429, 429]);
  const own = await call('/v1/key');
  await service.close();
  const now = Date.now();
  const day = new Date(now).toISOString().slice(0, 10);
  expect(own.status).toBe(200);
  expect(await store.read(apiKey.id, lastDays(now))).toEqual(
    inOrder([
      { day, operation: 'getKey', requests: 1, denied: 0 },
      { day, operation: list.name, requests: 2, denied: 1 },
      { day, operation: 'mcp', requests: 0, denied: 1 },
    ]),
  );
});

test('the keys more than half of whose requests were denied are counted, from one flush to the next', async () => {
  const store = { add: async () => {} };
  const usage = new UsageCounter({ store, operations, now: Date.now, warn });
  const send = (key: string, admitted: number, denied: number) => {
    for (let n = 0; n < admitted; n += 1) usage.count(key, [list.name]);
    for (let n = 0; n < denied; n += 1) usage.count(key, [read.name], 'denied');
  };
  send('half', 2, 2);
  send('most', 2, 3);
  send('all', 0, 1);
  send('none', 5, 0);
  expect(usage.mostlyDenied).toBe(0);
  await usage.flush();
  expect(usage.mostlyDenied).toBe(2);
  await usage.flush();
  expect(usage.mostlyDenied).toBe(0);
});

test('the counts of several nodes are added up, however often they store them at once', async () => {
  const { store, id } = await prepare();
  const nodes = [1, 2, 3, 4].map(() => new UsageCounter({ store, operations, now: Date.now, warn }));
  for (let round = 0; round < 25; round += 1) {
    for (const node of nodes) node.count(id, [list.name, read.name]);
    await Promise.all(nodes.map((node) => node.flush()));
  }
  await Promise.all(nodes.map((node) => node.close()));
  expect((await store.read(id, lastDays(Date.now()))).map(({ requests }) => requests)).toEqual([100, 100]);
});

test('rows are taken in one order, however they are given, so that nodes cannot deadlock', async () => {
  const { url, store } = await prepare();
  const ids = [3, 1, 2].map((n) => `${n}0000000-0000-4000-8000-000000000000`);
  const rows = ['2026-11-20', '2026-11-19'].flatMap((day) =>
    [read.name, list.name].flatMap((operation) =>
      ids.map((apiKeyId) => ({ apiKeyId, day, operation, requests: 1, denied: 0 })),
    ),
  );
  await store.add(rows);
  const readIn = async (order: string) =>
    (await open(url).pool.query(`SELECT * FROM api_key_usage ORDER BY ${order}`)).rows;
  // A table that was empty has them in the order in which they came.
  const taken = await readIn('ctid');
  expect(taken).toHaveLength(rows.length);
  expect(taken).toEqual(await readIn('api_key_id, day, operation'));
});

test('usage of a key that is gone, or never was, disturbs nobody, and is deleted once it is as old as others', async () => {
  const { url, store, keys, id } = await prepare();
  const kept = (await keys.create(plain)).apiKey.id;
  const now = Date.now();
  for (const ageDays of [0, 50]) {
    const usage = new UsageCounter({ store, operations, now: () => now - ageDays * DAY_MS, warn });
    for (const each of [id, kept, '00000000-0000-4000-8000-000000000000']) usage.count(each, [read.name]);
    await usage.close();
    expect(usage.waiting).toBe(0);
    if (ageDays === 0) await execute(url, 'DELETE FROM api_keys WHERE id = $1', [id]);
  }
  expect(await store.readKeys(lastDays(now))).toMatchObject([{ id: kept, requests: 1 }]);
  expect((await keys.list()).map((each) => each.id)).toEqual([kept]);
  expect(await runKeys({ DATABASE_URL: url }, 'usage')).toMatchObject([{ id: kept, requests: 1 }]);
  const count = async () => (await open(url).pool.query('SELECT FROM api_key_usage')).rowCount;
  expect(await count()).toBe(6);
  await execute(url, `DELETE FROM api_key_usage WHERE day = $1 AND api_key_id <> $2`, [toDay(now), kept]);
  await store.deleteExpired(40);
  expect(await count()).toBe(1);
});

test.each([0, 0.999])('a request is stored within 30 s, whenever it comes: %d', async (random) => {
  vi.useFakeTimers();
  vi.spyOn(Math, 'random').mockReturnValue(random);
  closing.push(
    async () => void vi.restoreAllMocks(),
    async () => void vi.useRealTimers(),
  );
  let stored = 0;
  const add = async (rows: readonly NewUsage[]) => {
    stored += rows.reduce((total, { requests }) => total + requests, 0);
  };
  const usage = new UsageCounter({ store: { add }, operations, now: Date.now, warn });
  const endFlushing = flushRegularly(usage);
  for (let second = 0; second < 90; second += 1) {
    await vi.advanceTimersByTimeAsync(1_000);
    usage.count('a key', [read.name]);
    if (second >= 30) expect(stored).toBeGreaterThan(second - 30);
  }
  await endFlushing();
});

test('more counts than one statement adds are each stored once', async () => {
  const { url, store } = await prepare();
  const usage = new UsageCounter({ store, operations, now: Date.now, warn });
  const keyCount = 2_500;
  for (let n = 0; n < keyCount; n += 1) usage.count(randomUUID(), [read.name]);
  await usage.flush();
  await usage.flush();
  const { rows } = await open(url).pool.query('SELECT DISTINCT api_key_id, requests FROM api_key_usage');
  expect(rows.map(({ requests }) => Number(requests))).toEqual(Array(keyCount).fill(1));
});

test('when some of the counts cannot be stored, only those are tried again', async () => {
  const stored = new Map<string, number>();
  let attempts = 0;
  const add = async (rows: readonly NewUsage[]) => {
    attempts += 1;
    if (attempts === 2) throw new Error('no database');
    for (const { apiKeyId, requests } of rows) stored.set(apiKeyId, (stored.get(apiKeyId) ?? 0) + requests);
  };
  const usage = new UsageCounter({ store: { add }, operations, now: Date.now, warn });
  const ids = Array.from({ length: 4_500 }, () => randomUUID());
  for (const id of ids) usage.count(id, [read.name]);
  await usage.flush();
  expect([stored.size, usage.waiting]).toEqual([1_000, 3_500]);
  await usage.close();
  expect(stored).toEqual(new Map(ids.map((id) => [id, 1])));
});

test('counts that cannot be stored take no more than so much memory, and what is dropped shows', async () => {
  const add = () => Promise.reject(new Error('no database'));
  const usage = new UsageCounter({ store: { add }, operations, now: Date.now, warn });
  for (let n = 0; n < 100_000; n += 1) usage.count(`key ${n}`, [read.name]);
  const flushing = usage.flush();
  usage.count('another key', [read.name]);
  await flushing;
  expect([usage.waiting, usage.dropped]).toEqual([100_000, 1]);
  usage.count('another key', [read.name]);
  usage.count('a key beyond', [read.name], 'denied');
  expect([usage.waiting, usage.dropped]).toEqual([100_000, 2]);
});

test('a process ends its flushes only when the one in progress has ended, however long that takes', async () => {
  vi.useFakeTimers();
  closing.push(async () => void vi.useRealTimers());
  const done: string[] = [];
  let store = () => {};
  const add = async () => {
    await new Promise<void>((resolve) => (store = resolve));
    done.push('stored');
  };
  const usage = new UsageCounter({ store: { add }, operations, now: Date.now, warn });
  const endFlushing = flushRegularly(usage);
  usage.count('a key', [read.name]);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(done).toEqual([]);
  const ended = endFlushing().then(() => done.push('ended'));
  await vi.advanceTimersByTimeAsync(60_000);
  store();
  await ended;
  expect(done).toEqual(['stored', 'ended']);
});

test('an outage of the database loses no counts', async () => {
  const url = new URL(await createTestDatabase());
  const direct = open(url.href);
  const { apiKey } = await createKeyStore(direct, 'by_test_', definition.scopes).create(plain);
  const proxy = await startTcpProxy({ host: url.hostname, port: Number(url.port) });
  closing.push(() => proxy.close());
  url.port = String(proxy.port);
  const store = createUsageStore(open(url.href));
  const warnings: unknown[] = [];
  const usage = new UsageCounter({
    store,
    operations,
    now: Date.now,
    warn: (error) => warnings.push(error),
  });
  const countAndFlush = async () => {
    for (let n = 0; n < 10; n += 1) usage.count(apiKey.id, [list.name]);
    await usage.flush();
  };
  await countAndFlush();
  // Connections are cut rather than stalled, so that nothing that was sent can have been stored.
  await proxy.cut();
  await countAndFlush();
  await countAndFlush();
  expect(warnings).toHaveLength(2);
  expect([usage.waiting, usage.dropped]).toEqual([1, 0]);
  await proxy.restore();
  const stored = async () => {
    await usage.flush();
    const [row] = await createUsageStore(direct).read(apiKey.id, lastDays(Date.now()));
    return row?.requests;
  };
  await expect.poll(stored).toBe(30);
  await usage.close();
  expect(await stored()).toBe(30);
});

test('usage is shown for 30 days', async () => {
  const { store, id } = await prepare();
  const now = Date.parse('2026-11-20T12:00:00Z');
  for (const age of [0, 29, 30]) {
    const usage = new UsageCounter({ store, operations, now: () => now - age * DAY_MS, warn });
    usage.count(id, [read.name]);
    await usage.close();
  }
  const days = (await store.read(id, lastDays(now))).map(({ day }) => day);
  expect(days).toEqual(['2026-11-20', '2026-10-22']);
  expect(await store.read(id, lastDays(now - DAY_MS))).toHaveLength(2);
});

test('usage is kept for USAGE_DAYS by the clock of the database, and longer only for a key without any since', async () => {
  const { url, store, keys, id } = await prepare();
  const idle = await keys.create(plain);
  const [today, lastKept, firstDeleted] = [0, 39, 40].map(
    (age) => `(now() AT TIME ZONE 'UTC')::date - ${age}`,
  );
  const insert = (keyId: string, day = '') =>
    execute(
      url,
      `INSERT INTO api_key_usage (api_key_id, day, operation, requests) VALUES ($1, ${day}, '${read.name}', 1)`,
      [keyId],
    );
  for (const day of [today, lastKept, firstDeleted]) await insert(id, day);
  await insert(idle.apiKey.id, firstDeleted);
  const ages = async (keyId: string) => {
    const { rows } = await open(url).pool.query(
      `SELECT (now() AT TIME ZONE 'UTC')::date - day AS age FROM api_key_usage WHERE api_key_id = $1 ORDER BY 1`,
      [keyId],
    );
    return rows.map(({ age }) => age);
  };
  // No clock of a node decides: it might be wrong, and delete the usage of all.
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 60 * DAY_MS });
  await store.deleteExpired(40);
  vi.useRealTimers();
  expect(await ages(id)).toEqual([0, 39]);
  expect(await ages(idle.apiKey.id)).toEqual([40]);
  await insert(idle.apiKey.id, today);
  await store.deleteExpired(40);
  expect(await ages(idle.apiKey.id)).toEqual([0]);
});

test('a service deletes usage that is older than its USAGE_DAYS', async () => {
  const { url, id } = await prepare();
  for (const age of [0, 34, 36])
    await execute(
      url,
      `INSERT INTO api_key_usage (api_key_id, day, operation, requests)
      VALUES ($1, (now() AT TIME ZONE 'UTC')::date - $2::int, '${read.name}', 1)`,
      [id, age],
    );
  const service = run('main', [], { DATABASE_URL: url, PORT: '0', USAGE_DAYS: '35' });
  await untilListening(service);
  const count = async () =>
    Number((await open(url).pool.query('SELECT count(*) FROM api_key_usage')).rows[0].count);
  await expect.poll(count, { timeout: 20_000 }).toBe(2);
  service.child.kill('SIGTERM');
  await service.ended;
});

test.each([
  ['a key is locked', 'SELECT FROM api_keys WHERE id = $1 FOR UPDATE', 4],
  ['a key is being deleted', 'DELETE FROM api_keys WHERE id = $1', 4],
  ['the usage of a key is locked', 'SELECT FROM api_key_usage WHERE api_key_id = $1 FOR UPDATE', 2],
])(
  'while %s, usage is stored, or kept with what shares its statement until the row is free',
  async (_, lock, storedMeanwhile) => {
    const { url, store, keys, id } = await prepare();
    const other = (await keys.create(plain)).apiKey.id;
    const warnings: unknown[] = [];
    const usage = new UsageCounter({
      store,
      operations,
      now: Date.now,
      warn: (error) => warnings.push(error),
    });
    const send = async () => {
      for (const each of [id, other]) {
        usage.count(each, [read.name, read.name]);
        usage.count(each, [read.name], 'denied');
      }
      await usage.flush();
    };
    const readFirst = async (keyId: string) => (await store.read(keyId, lastDays(Date.now())))[0];
    await send();
    const owner = new pg.Client(url);
    await owner.connect();
    await owner.query('BEGIN');
    await owner.query(lock, [id]);
    await send();
    await usage.flush();
    for (const each of [id, other])
      expect(await readFirst(each)).toMatchObject({ requests: storedMeanwhile });
    expect([usage.waiting, warnings.length]).toEqual(storedMeanwhile === 4 ? [0, 0] : [2, 2]);
    await owner.query('ROLLBACK');
    await owner.end();
    await usage.flush();
    for (const each of [id, other]) expect(await readFirst(each)).toMatchObject({ requests: 4, denied: 2 });
    expect(usage.waiting).toBe(0);
  },
);

test('while the usage of all keys is locked, creates go on as before', async () => {
  const databaseUrl = await createTestDatabase();
  const service = await startService({ databaseUrl });
  closing.push(service.close);
  const usage = new UsageCounter({
    store: createUsageStore(service.serviceDatabase),
    operations,
    now: Date.now,
    warn,
  });
  usage.count(randomUUID(), [read.name]);
  const owner = new pg.Client(databaseUrl);
  await owner.connect();
  await owner.query('BEGIN; LOCK TABLE api_key_usage IN ACCESS EXCLUSIVE MODE');
  const call = createCaller(service);
  const flushing = usage.flush();
  const creates = Array.from({ length: 20 }, () => call(create.path, post(create.body)));
  expect(new Set((await Promise.all(creates)).map(({ status }) => status))).toEqual(new Set([201]));
  await owner.query('ROLLBACK');
  await owner.end();
  await flushing;
  await usage.close();
  expect(usage.waiting).toBe(0);
});

test('a service stores its counts when it shuts down, and keys usage shows deprecated operations separately', async () => {
  const environment = { DATABASE_URL: await createTestDatabase() };
  const { id, key } = await runKeys(environment, 'create', '--name', 'shop', '--plan', 'free');
  expect(await printUsage(environment, id)).toContain('No requests');
  const fromSources = ['--conditions=@animal-store/source', '--import', 'tsx', WITH_DEPRECATED];
  const service = runNode(fromSources, { DATABASE_URL: asService(environment.DATABASE_URL), PORT: '0' });
  const call = createCaller({ url: await untilListening(service), key });
  const isReady = async () => (await call('/health/ready', { key: null })).status;
  await expect.poll(isReady).toBe(200);
  const statuses: number[] = [];
  for (const path of [list.path, deprecated.path, deprecated.missingPath, rpcPath(list.name, {})])
    statuses.push((await call(path)).status);
  expect(statuses).toEqual([200, 200, 404, 200]);
  service.child.kill('SIGTERM');
  expect(await service.ended).toBe(0);
  const day = new Date().toISOString().slice(0, 10);
  expect(await readUsage(environment, id)).toEqual({
    id,
    name: 'shop',
    requests: 4,
    denied: 0,
    deprecatedRequests: 2,
    deprecatedDenied: 0,
    lastDay: day,
    lastDeprecatedDay: day,
    usage: inOrder([
      { day, operation: deprecated.name, requests: 2, denied: 0, deprecated: true },
      { day, operation: list.name, requests: 2, denied: 0, deprecated: false },
    ]),
  });
  const table = await printUsage(environment, id);
  const cells = (prefix: string) => {
    const line = table.split('\n').find((each) => each.startsWith(prefix));
    return line?.trim().split(/ {2,}/);
  };
  const titles = listed.map(({ name, deprecation }) => (deprecation ? `${name} (deprecated)` : name));
  expect(titles).toContain(`${deprecated.name} (deprecated)`);
  expect(cells('DAY')).toEqual(['DAY (UTC)', ...titles, 'denied']);
  const called = [list.name, deprecated.name];
  expect(cells(day)).toEqual([day, ...operations.map((name) => (called.includes(name) ? '2' : '0')), '0']);
  expect(table).toContain(`2 of 4 requests called a deprecated operation, the last on ${day}.`);
});

test('keys usage without an id shows all keys by requests, or those that call deprecated operations', async () => {
  const url = await createTestDatabase();
  const environment = { DATABASE_URL: url, LC_ALL: 'C.UTF-8' };
  const database = open(url);
  const store = createUsageStore(database);
  const keyStore = createKeyStore(database, 'by_test_', definition.scopes);
  expect(await printUsage(environment)).toContain('No requests from ');
  expect(await printUsage(environment, '--deprecated')).toContain('No requests of deprecated operations');
  const now = Date.now();
  const ids: string[] = [];
  for (const [name, today, before] of [
    ['old', [list.name], [deprecated.name]],
    ['new', [list.name, list.name, create.name], []],
    ['idle', [], []],
  ] as const) {
    const { apiKey } = await keyStore.create({ ...plain, name });
    for (const [called, ageDays] of [
      [today, 0],
      [before, 3],
    ] as const) {
      const usage = new UsageCounter({ store, operations, now: () => now - ageDays * DAY_MS, warn });
      usage.count(apiKey.id, called);
      await usage.close();
    }
    ids.push(apiKey.id);
  }
  const lastDay = new Date(now).toISOString().slice(0, 10);
  const lastDeprecatedDay = new Date(now - 3 * DAY_MS).toISOString().slice(0, 10);
  const [old, fresh] = [
    {
      id: ids[0],
      name: 'old',
      owner: null,
      requests: 2,
      denied: 0,
      deprecatedRequests: 1,
      deprecatedDenied: 0,
      lastDay,
      lastDeprecatedDay,
    },
    {
      id: ids[1],
      name: 'new',
      owner: null,
      requests: 3,
      denied: 0,
      deprecatedRequests: 0,
      deprecatedDenied: 0,
      lastDay,
      lastDeprecatedDay: null,
    },
  ];
  expect(await readUsage(environment)).toEqual([fresh, old]);
  expect(await readUsage(environment, '--deprecated')).toEqual([old]);
  const row = (id = '', ...cells: string[]) => [id.slice(0, 8), ...cells].join(' +');
  expect(await printUsage(environment)).toMatch(
    new RegExp(
      `${row(ids[1], 'new', '-', '3', '0', lastDay, '0', '-', '▁{29}█')}\n${row(ids[0], 'old', '-', '2', '0', lastDay, '1', lastDeprecatedDay, '▁{26}█▁▁█')}\n`,
    ),
  );
  expect(await printUsage(environment, ids[0])).toMatch(/\n\nDay by day: ▁{26}█▁▁█\n\n/);
  const show = (id = '') => runInProcess(['keys', 'show', id], environment);
  expect((await show(ids[0])).output).toMatch(/\nLast 30 days +▁{26}█▁▁█\n/);
  expect((await show(ids[2])).output).toMatch(/\nLast 30 days +-\n/);
  for (const args of [['usage'], ['usage', String(ids[0])], ['show', String(ids[0])]])
    expect(JSON.stringify(await runKeys(environment, ...args))).not.toContain('▁');
  expect(await printUsage(environment, '--csv')).not.toContain('▁');
  expect(await printUsage(environment, '--deprecated', ids[0])).toContain('leave out the id');
});

test('keys usage finds who calls deprecated operations among those whose calls were all denied, too', async () => {
  const url = await createTestDatabase();
  const environment = { DATABASE_URL: url };
  const database = open(url);
  const store = createUsageStore(database);
  const { apiKey } = await createKeyStore(database, 'by_test_', definition.scopes).create({
    ...plain,
    name: 'loop',
  });
  const now = Date.now();
  const usage = new UsageCounter({ store, operations, now: () => now, warn });
  usage.count(apiKey.id, [list.name]);
  usage.count(apiKey.id, [deprecated.name, deprecated.name, list.name], 'denied');
  await usage.close();
  const day = new Date(now).toISOString().slice(0, 10);
  expect(await readUsage(environment, '--deprecated')).toEqual([
    {
      id: apiKey.id,
      name: 'loop',
      owner: null,
      requests: 1,
      denied: 3,
      deprecatedRequests: 0,
      deprecatedDenied: 2,
      lastDay: day,
      lastDeprecatedDay: day,
    },
  ]);
  expect(await printUsage(environment, apiKey.id)).toContain(
    `0 of 1 requests called a deprecated operation, and 2 of the 3 that were denied, the last on ${day}.`,
  );
});

test('keys usage of an unknown key says what to do', async () => {
  const environment = { DATABASE_URL: await createTestDatabase() };
  const { code, output } = await runUsage(environment, '00000000-0000-4000-8000-000000000000');
  expect([code, output]).toEqual([3, expect.stringContaining('"keys list" shows all')]);
});

test('keys usage shows the days that are asked for, by what was denied, and as CSV', async () => {
  const url = await createTestDatabase();
  const environment = { DATABASE_URL: url };
  const keyStore = createKeyStore(open(url), 'by_test_', definition.scopes);
  const loop = (await keyStore.create({ ...plain, name: 'a "loop", in a shop', owner: 'acme' })).apiKey;
  const busy = (await keyStore.create({ ...plain, name: 'busy' })).apiKey;
  for (const [id, day, operation, requests, denied] of [
    [loop.id, '2026-01-01', list.name, 5, 70],
    [loop.id, '2026-01-01', deprecated.name, 1, 0],
    [loop.id, '2026-03-31', list.name, 0, 30],
    [loop.id, '2025-12-31', list.name, 1_000, 0],
    [busy.id, '2026-02-28', list.name, 900, 2],
    [busy.id, '2026-04-01', list.name, 1, 5_000],
  ] as const)
    await execute(
      url,
      'INSERT INTO api_key_usage (api_key_id, day, operation, requests, denied) VALUES ($1, $2, $3, $4, $5)',
      [id, day, operation, requests, denied],
    );
  const quarter = ['--from', '2026-01-01', '--to', '2026-03-31'];
  const summary = async (...args: string[]) =>
    (await readUsage(environment, ...quarter, ...args)).map(
      ({ name, requests, denied }: Record<string, unknown>) => [name, requests, denied],
    );
  expect(await summary()).toEqual([
    ['busy', 900, 2],
    ['a "loop", in a shop', 6, 100],
  ]);
  expect((await summary('--by', 'denied')).map(([name]: string[]) => name)).toEqual([loop.name, 'busy']);
  const rows = inOrder([
    { day: '2026-03-31', operation: list.name, cells: '0,30,false' },
    { day: '2026-01-01', operation: deprecated.name, cells: '1,0,true' },
    { day: '2026-01-01', operation: list.name, cells: '5,70,false' },
  ]).map(
    ({ day, operation, cells }) => `${loop.id},"a ""loop"", in a shop",acme,${day},${operation},${cells}\n`,
  );
  const titles = 'id,name,owner,day,operation,requests,denied,deprecated\n';
  const csv = `${titles}${rows.join('')}`;
  expect(await printUsage(environment, loop.id, ...quarter, '--csv')).toBe(csv);
  const [newest = '', ...older] = rows;
  const ofBusy = `${busy.id},busy,,2026-02-28,${list.name},900,2,false\n`;
  expect(await printUsage(environment, ...quarter, '--csv')).toBe(
    [titles, newest, ofBusy, ...older].join(''),
  );
  expect((await printUsage(environment, ...quarter, '--csv', '--deprecated')).split('\n')).toEqual([
    ...csv.split('\n').filter((line) => !line.includes(list.name)),
  ]);
  for (const [args, message] of [
    [['--from', '2026-02-30'], 'A day looks like'],
    [['--from', '2026-02-02', '--to', '2026-02-01'], '--from is after --to'],
    [['--by', 'denied', loop.id], '--by is for all keys'],
    [['--csv', '--json'], 'cannot be used with'],
  ] as const)
    expect(await printUsage(environment, ...args)).toContain(message);
});

test('keys usage --by owner sums what the keys of each owner called by operation, for invoices', async () => {
  const url = await createTestDatabase();
  const environment = { DATABASE_URL: url };
  const issue = (name: string, ...owner: string[]) =>
    runKeys(environment, 'create', '--name', name, '--plan', 'free', ...owner);
  const [first, second, other, ofNobody] = [
    await issue('first', '--owner', 'acme, inc'),
    await issue('second', '--owner', 'acme, inc'),
    await issue('other', '--owner', 'zoo'),
    await issue('alone'),
  ];
  for (const [{ id }, day, operation, requests, denied] of [
    [first, '2026-01-01', list.name, 5, 1],
    [first, '2026-01-31', list.name, 10, 0],
    [first, '2026-02-01', list.name, 1_000, 0],
    [second, '2026-01-02', list.name, 20, 3],
    [second, '2026-01-02', create.name, 7, 0],
    [other, '2026-01-15', list.name, 2 ** 40, 0],
    [ofNobody, '2026-01-15', list.name, 1, 9],
  ] as const)
    await execute(
      url,
      'INSERT INTO api_key_usage (api_key_id, day, operation, requests, denied) VALUES ($1, $2, $3, $4, $5)',
      [id, day, operation, requests, denied],
    );
  const january = ['--from', '2026-01-01', '--to', '2026-01-31', '--by', 'owner'];
  const [created, listed] = [
    { owner: 'acme, inc', operation: create.name, requests: 7, denied: 0 },
    { owner: 'acme, inc', operation: list.name, requests: 35, denied: 4 },
  ];
  const ofAcme = [created, listed].toSorted((a, b) => (a.operation < b.operation ? -1 : 1));
  expect(await readUsage(environment, ...january)).toEqual([
    ...ofAcme,
    { owner: 'zoo', operation: list.name, requests: 2 ** 40, denied: 0 },
    { owner: null, operation: list.name, requests: 1, denied: 9 },
  ]);
  expect(await readUsage(environment, ...january, '--owner', 'acme, inc')).toEqual(ofAcme);
  expect(await printUsage(environment, ...january, '--csv', '--owner', 'acme, inc')).toBe(
    `owner,operation,requests,denied\n${ofAcme
      .map(({ operation, requests, denied }) => `"acme, inc",${operation},${requests},${denied}\n`)
      .join('')}`,
  );
  expect(await printUsage(environment, ...january, '--owner', 'zoo')).toMatch(
    new RegExp(`^OWNER +OPERATION +REQUESTS +DENIED\nzoo +${list.name} +1099511627776 +0\n$`),
  );
  for (const [args, problem] of [
    [['--deprecated'], '--by owner is the sum of all operations'],
    [[first.id], '--by is for all keys'],
  ] as const)
    expect(await printUsage(environment, ...january, ...args)).toContain(problem);
});

test('keys usage --csv starts with the newest day, and each day with the key that has most of what --by says', async () => {
  const url = await createTestDatabase();
  const environment = { DATABASE_URL: url };
  const keyStore = createKeyStore(open(url), 'by_test_', definition.scopes);
  const insert = (id: string, day: string, requests: number, denied: number) =>
    execute(
      url,
      'INSERT INTO api_key_usage (api_key_id, day, operation, requests, denied) VALUES ($1, $2, $3, $4, $5)',
      [id, day, list.name, requests, denied],
    );
  const [a, b] = [
    await keyStore.create({ ...plain, name: 'a' }),
    await keyStore.create({ ...plain, name: 'b' }),
  ];
  await insert(a.apiKey.id, '2026-01-01', 1, 9);
  await insert(b.apiKey.id, '2026-01-01', 5, 0);
  // Of a key that is gone
  await insert(randomUUID(), '2026-01-02', 1, 0);
  await insert(a.apiKey.id, '2026-01-04', 7, 0);
  await insert(b.apiKey.id, '2026-01-04', 6, 8);
  const lines = async (...options: readonly string[]) => {
    const range = ['--from', '2026-01-01', '--to', '2026-01-31'];
    const [, ...rows] = (await printUsage(environment, ...range, '--csv', ...options)).trim().split('\n');
    return rows.map((row) => row.split(',')).map(([, name, , day]) => `${day} ${name}`);
  };
  expect(await lines()).toEqual(['2026-01-04 a', '2026-01-04 b', '2026-01-01 b', '2026-01-01 a']);
  expect(await lines('--by', 'denied')).toEqual([
    ...['2026-01-04 b', '2026-01-04 a', '2026-01-01 a', '2026-01-01 b'],
  ]);
});

/** Makes a statement take so many seconds longer for each of these rows that it reads. Planners avoid them. */
const slowDown = (url: string, seconds: number, condition: string) =>
  execute(
    url,
    `CREATE FUNCTION is_slow() RETURNS boolean LANGUAGE plpgsql VOLATILE COST 1000000 AS $$ BEGIN PERFORM pg_sleep(${seconds}); RETURN true; END $$;
    ALTER TABLE api_key_usage ENABLE ROW LEVEL SECURITY;
    CREATE POLICY slow ON api_key_usage USING (CASE WHEN ${condition} THEN is_slow() ELSE true END)`,
  );

test('keys usage of an owner does not read what other keys have called, however much that is', async () => {
  const url = await createTestDatabase();
  const keyStore = createKeyStore(open(url), 'by_test_', definition.scopes);
  const own = (await keyStore.create({ ...plain, name: 'own', owner: 'acme' })).apiKey;
  const other = (await keyStore.create({ ...plain, name: 'other' })).apiKey;
  for (const [id, day] of [
    [own.id, '2026-01-01'],
    [other.id, '2026-01-02'],
    [own.id, '2026-01-03'],
  ])
    await execute(
      url,
      `INSERT INTO api_key_usage (api_key_id, day, operation, requests) VALUES ($1, $2, '${list.name}', 5)`,
      [id, day],
    );
  // Longer than the database allows a statement
  await slowDown(url, 60, `api_key_id = '${other.id}'`);
  const options = ['--owner', 'acme', '--from', '2026-01-01', '--to', '2026-03-31'];
  const environment = { DATABASE_URL: url };
  expect(await runKeys(environment, 'usage', ...options)).toMatchObject([{ name: 'own', requests: 10 }]);
  expect(await printUsage(environment, ...options, '--csv')).toContain(`acme,2026-01-03,${list.name},5,0`);
});

test('keys usage of all keys may take longer than a request, so that no number of days is too many', async () => {
  const url = await createTestDatabase();
  const keyStore = createKeyStore(open(url), 'by_test_', definition.scopes);
  const { id } = (await keyStore.create({ ...plain, name: 'busy' })).apiKey;
  const day = (week: number) =>
    new Date(Date.parse('2025-01-01') + week * 7 * DAY_MS).toISOString().slice(0, 10);
  const weeks = 30;
  for (let week = 0; week < weeks; week += 1)
    await execute(
      url,
      'INSERT INTO api_key_usage (api_key_id, day, operation, requests) VALUES ($1, $2, $3, 1)',
      [id, day(week), list.name],
    );
  // All of them together take 1.5 s.
  await slowDown(url, 0.05, 'true');
  const environment = { DATABASE_URL: url };
  const always = ['--from', '1970-01-02', '--to', '9999-12-31'];
  expect(await runKeys(environment, 'usage', ...always)).toMatchObject([
    { requests: weeks, lastDay: day(weeks - 1) },
  ]);
  expect((await printUsage(environment, ...always, '--csv')).split('\n')).toHaveLength(weeks + 2);
  expect(await runKeys(environment, 'usage', '--from', day(1), '--to', day(weeks - 2))).toMatchObject([
    { requests: weeks - 2, lastDay: day(weeks - 2) },
  ]);
});
