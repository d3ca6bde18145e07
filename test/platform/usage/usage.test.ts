import { randomUUID } from 'node:crypto';
import { afterEach, expect, test, vi } from 'vitest';
import { type Database, openDatabase } from '../../../src/platform/database/client.js';
import { createKeyStore } from '../../../src/platform/keys/store.js';
import { listOperations } from '../../../src/platform/operations/list-operations.js';
import { storeRegularly, UsageCounter } from '../../../src/platform/usage/counter.js';
import { createUsageStore, type UsageBatch } from '../../../src/platform/usage/store.js';
import { appRouter } from '../../../src/router.js';
import { execute } from '../../support/execute.js';
import { message, oldToolCall, toolCall } from '../../support/mcp.js';
import { type Environment, run, runKeys, untilListening } from '../../support/process.js';
import { asService } from '../../support/service-role.js';
import { startTcpProxy } from '../../support/tcp-proxy.js';
import { createCaller, createTestDatabase, post, rpcPath, startService } from '../../support/test-service.js';

const DAY_MS = 86_400_000;
const listed = listOperations(appRouter);
const operations = listed.map(({ name }) => name);
const plain = { name: 'a key', plan: 'free', perMinute: null, perDay: null, expiresAt: null } as const;
const warn = () => {};

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

function open(url: string): Database {
  const database = openDatabase(asService(url), () => {});
  closing.push(() => database.close());
  return database;
}

async function prepare() {
  const url = await createTestDatabase();
  const database = open(url);
  const store = createUsageStore(database);
  const keys = createKeyStore(database, 'as_test_');
  const { apiKey } = await keys.create(plain);
  return { url, database, store, keys, id: apiKey.id };
}

async function printUsage(environment: Environment, ...args: (string | undefined)[]): Promise<string> {
  const program = run('cli', ['keys', 'usage', ...args.map(String)], environment);
  await program.ended;
  return program.output();
}

test('admitted requests are counted over all protocols, per operation and UTC day, and each call of a batch separately', async () => {
  const databaseUrl = await createTestDatabase();
  const store = createUsageStore(open(databaseUrl));
  let now = Date.parse('2026-11-19T23:59:59.999Z');
  const usage = new UsageCounter({ store, operations, now: () => now, warn });
  const service = await startService({ databaseUrl, usage });
  closing.push(service.close);
  const [apiKey] = await service.keys.list();
  const call = createCaller(service);
  await call('/v1/pets');
  await call('/v1/pets', { method: 'HEAD' });
  await call('/v1/pets', post({ name: 'Rex', categoryId: 1 }));
  await call('/v1/pets', post('{'));
  await call('/v1/pets/1');
  now += 1;
  await call(rpcPath('getPet', { petId: 1 }));
  await call('/trpc/getPet,getPet,listOrders,invented?batch=1&input={}');
  for (const toCall of [toolCall, oldToolCall]) await call('/mcp', toCall('listOrders', { limit: 0 }));
  // None of these was admitted with a key, or is of an operation
  await call('/mcp', message('tools/list'));
  await call('/mcp', toolCall('invented'));
  await call('/mcp', { ...oldToolCall('listOrders'), key: null });
  await call('/v1/pets', { key: null });
  await call('/v1/pets', { method: 'DELETE' });
  await call('/v1/nowhere');
  await call(`/trpc/${Array(21).fill('getPet').join(',')}?batch=1`);
  await usage.close();
  expect(await store.read(apiKey?.id ?? '', now)).toEqual([
    { day: '2026-11-19', operation: 'createPet', requests: 2 },
    { day: '2026-11-19', operation: 'getPet', requests: 1 },
    { day: '2026-11-19', operation: 'listPets', requests: 2 },
    { day: '2026-11-20', operation: 'getPet', requests: 3 },
    { day: '2026-11-20', operation: 'listOrders', requests: 3 },
  ]);
});

test('a denied request is not counted', async () => {
  const databaseUrl = await createTestDatabase();
  const store = createUsageStore(open(databaseUrl));
  const usage = new UsageCounter({ store, operations, now: Date.now, warn });
  const service = await startService({ databaseUrl, usage });
  closing.push(service.close);
  const limits = { plan: 'enterprise', perMinute: 3, perDay: 100 } as const;
  const { key, apiKey } = await service.keys.create({ ...plain, ...limits });
  const call = createCaller({ url: service.url, key });
  for (let n = 0; n < 5; n += 1) await call('/v1/pets');
  await usage.close();
  expect(await store.read(apiKey.id, Date.now())).toMatchObject([{ operation: 'listPets', requests: 3 }]);
});

test('the counts of several nodes are added up, and a deleted key does not affect the others', async () => {
  const { url, store, id } = await prepare();
  const nodes = [1, 2, 3].map(() => new UsageCounter({ store, operations, now: Date.now, warn }));
  for (const node of nodes) {
    for (let n = 0; n < 50; n += 1) node.count(id, ['listPets', 'getPet']);
    node.count('00000000-0000-4000-8000-000000000000', ['listPets']);
  }
  await Promise.all(nodes.map((node) => node.close()));
  expect((await store.read(id, Date.now())).map(({ requests }) => requests)).toEqual([150, 150]);
  await execute(url, 'DELETE FROM api_keys WHERE id = $1', [id]);
  expect(await store.read(id, Date.now())).toEqual([]);
});

test('what nodes have stored is added up once, by whichever comes first', async () => {
  const { database, store, id } = await prepare();
  const nodes = [1, 2, 3, 4].map(() => new UsageCounter({ store, operations, now: Date.now, warn }));
  const read = async () => (await store.read(id, Date.now())).map(({ requests }) => requests);
  for (const node of nodes) {
    node.count(id, ['getPet']);
    await node.store();
  }
  expect(await read()).toEqual([]);
  await Promise.all(nodes.map((node) => node.addUp()));
  expect(await read()).toEqual([4]);
  for (let round = 0; round < 25; round += 1) {
    await Promise.all(
      nodes.map(async (node) => {
        node.count(id, ['getPet']);
        await node.store();
        await node.addUp();
      }),
    );
  }
  await store.addUp();
  expect(await read()).toEqual([104]);
  expect(await (await database.loadPrisma()).apiKeyUsageBatch.count()).toBe(0);
});

test.each([0, 0.999])(
  'a request is added up within 30 s, whenever it comes, by the first and the last of the nodes: %d',
  async (random) => {
    vi.useFakeTimers();
    vi.spyOn(Math, 'random').mockReturnValue(random);
    closing.push(
      async () => void vi.restoreAllMocks(),
      async () => void vi.useRealTimers(),
    );
    let [stored, addedUp] = [0, 0];
    const store = {
      add: async ({ sums }: UsageBatch) => {
        stored += sums.reduce((total, [, requests]) => total + requests, 0);
      },
      addUp: async () => {
        addedUp = stored;
      },
    };
    const usage = new UsageCounter({ store, operations, now: Date.now, warn });
    const endStoring = storeRegularly(usage);
    for (let second = 0; second < 90; second += 1) {
      await vi.advanceTimersByTimeAsync(1_000);
      usage.count('a key', ['getPet']);
      if (second >= 30) expect(addedUp).toBeGreaterThan(second - 30);
    }
    await endStoring();
  },
);

test('more sums than a batch holds, and more batches than one statement adds up, are each added up once', async () => {
  const { store, id } = await prepare();
  const [othersPerNode, nodes] = [2_500, 12];
  for (let node = 0; node < nodes; node += 1) {
    const usage = new UsageCounter({ store, operations, now: Date.now, warn });
    for (let n = 0; n < othersPerNode; n += 1) usage.count(randomUUID(), ['getPet']);
    usage.count(id, ['getPet']);
    await usage.store();
  }
  await store.addUp();
  expect(await store.readTotals(id, Date.now())).toEqual([{ operation: 'getPet', requests: nodes }]);
});

test('when one of several batches cannot be stored, only what was not stored is tried again', async () => {
  const stored = new Map<string, number>();
  let attempts = 0;
  const store = {
    add: async ({ sums }: UsageBatch) => {
      attempts += 1;
      if (attempts === 2) throw new Error('no database');
      for (const [id, requests] of sums) stored.set(id, (stored.get(id) ?? 0) + requests);
    },
    addUp: async () => {},
  };
  const usage = new UsageCounter({ store, operations, now: Date.now, warn });
  const ids = Array.from({ length: 4_500 }, () => randomUUID());
  for (const id of ids) usage.count(id, ['getPet']);
  await usage.store();
  expect([stored.size, usage.waiting]).toEqual([500, 4_000]);
  await usage.close();
  expect(stored).toEqual(new Map(ids.map((id) => [id, 1])));
});

test('a node adds up only when it has stored, however long that takes, and ends only then', async () => {
  vi.useFakeTimers();
  closing.push(async () => void vi.useRealTimers());
  const done: string[] = [];
  let endAdding = () => {};
  const store = {
    add: () => new Promise<void>((resolve) => (endAdding = resolve)).then(() => void done.push('stored')),
    addUp: async () => void done.push('added up'),
  };
  const usage = new UsageCounter({ store, operations, now: Date.now, warn });
  const endStoring = storeRegularly(usage);
  await vi.advanceTimersByTimeAsync(1);
  usage.count('a key', ['getPet']);
  done.length = 0;
  await vi.advanceTimersByTimeAsync(60_000);
  // The first period may add up before it stores.
  expect(done.filter((what) => what === 'added up').length).toBeLessThanOrEqual(1);
  done.length = 0;
  const ended = endStoring().then(() => done.push('ended'));
  endAdding();
  await ended;
  expect(done).toEqual(['stored', 'added up', 'ended']);
});

test('an outage of the database loses no counts', async () => {
  const url = new URL(await createTestDatabase());
  const direct = open(url.href);
  const { apiKey } = await createKeyStore(direct, 'as_test_').create(plain);
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
  const countAndStore = async () => {
    for (let n = 0; n < 10; n += 1) usage.count(apiKey.id, ['listPets']);
    await usage.store();
  };
  await countAndStore();
  // Connections are cut rather than stalled, so that nothing that was sent can have been stored.
  await proxy.cut();
  await countAndStore();
  await countAndStore();
  expect(warnings).toHaveLength(2);
  expect([usage.waiting, usage.dropped]).toEqual([1, 0]);
  await proxy.restore();
  const stored = async () => {
    await usage.store();
    await usage.addUp();
    const [row] = await createUsageStore(direct).read(apiKey.id, Date.now());
    return row?.requests;
  };
  await expect.poll(stored).toBe(30);
  await usage.close();
  expect(await stored()).toBe(30);
});

test('usage is shown for 30 days, and kept longer only for a key without any since', async () => {
  const { store, keys, id } = await prepare();
  const now = Date.parse('2026-11-20T12:00:00Z');
  for (const age of [0, 29, 30]) {
    const usage = new UsageCounter({ store, operations, now: () => now - age * DAY_MS, warn });
    usage.count(id, ['getPet']);
    await usage.close();
  }
  const days = (await store.read(id, now)).map(({ day }) => day);
  expect(days).toEqual(['2026-10-22', '2026-11-20']);
  expect(await store.read(id, now - DAY_MS)).toHaveLength(3);
  await store.deleteExpired(now);
  expect(await store.read(id, now - DAY_MS)).toHaveLength(2);
  const later = now + 365 * DAY_MS;
  await store.deleteExpired(later);
  expect(await store.read(id, later)).toEqual([]);
  const lastUsedOn = async () => (await keys.list()).map((apiKey) => apiKey.lastUsedOn);
  expect(await lastUsedOn()).toEqual(['2026-11-20']);
  const usage = new UsageCounter({ store, operations, now: () => later, warn });
  usage.count(id, ['getPet']);
  await usage.close();
  await store.deleteExpired(later);
  expect(await store.read(id, now)).toMatchObject([{ day: '2027-11-20' }]);
  expect(await lastUsedOn()).toEqual(['2027-11-20']);
});

test('a service stores its counts when it shuts down, and keys usage shows deprecated operations separately', async () => {
  const environment = { DATABASE_URL: await createTestDatabase() };
  const { id, key } = await runKeys(environment, 'create', '--name', 'shop', '--plan', 'free');
  expect(await printUsage(environment, id)).toContain('No requests');
  const service = run('main', [], { ...environment, PORT: '0' });
  const call = createCaller({ url: await untilListening(service), key });
  const isReady = async () => (await call('/health/ready', { key: null })).status;
  await expect.poll(isReady).toBe(200);
  const statuses: number[] = [];
  for (const path of ['/v1/pets', '/v1/pets/1', '/v1/pets/2', rpcPath('listPets', {})])
    statuses.push((await call(path)).status);
  expect(statuses).toEqual([200, 404, 404, 200]);
  service.child.kill('SIGTERM');
  expect(await service.ended).toBe(0);
  const day = new Date().toISOString().slice(0, 10);
  expect(await runKeys(environment, 'usage', id)).toEqual({
    id,
    name: 'shop',
    requests: 4,
    deprecatedRequests: 2,
    lastDay: day,
    lastDeprecatedDay: day,
    usage: [
      { day, operation: 'getPet', requests: 2, deprecated: true },
      { day, operation: 'listPets', requests: 2, deprecated: false },
    ],
  });
  const table = await printUsage(environment, id);
  const cells = (prefix: string) => {
    const line = table.split('\n').find((each) => each.startsWith(prefix));
    return line?.trim().split(/ {2,}/);
  };
  const titles = listed.map(({ name, deprecation }) => (deprecation ? `${name} (deprecated)` : name));
  expect(titles).toContain('getPet (deprecated)');
  expect(cells('DAY')).toEqual(['DAY (UTC)', ...titles]);
  const called = ['listPets', 'getPet'];
  expect(cells(day)).toEqual([day, ...operations.map((name) => (called.includes(name) ? '2' : '0'))]);
  expect(table).toContain(`2 of 4 requests called a deprecated operation, the last on ${day}.`);
});

test('keys usage without an id shows all keys by requests, or those that call deprecated operations', async () => {
  const url = await createTestDatabase();
  const environment = { DATABASE_URL: url };
  const database = open(url);
  const store = createUsageStore(database);
  const keyStore = createKeyStore(database, 'as_test_');
  expect(await printUsage(environment)).toContain('No requests in the last 30 days');
  expect(await printUsage(environment, '--deprecated')).toContain('No requests of deprecated operations');
  const now = Date.now();
  const ids: string[] = [];
  for (const [name, today, before] of [
    ['old', ['listPets'], ['getPet']],
    ['new', ['listPets', 'listPets', 'createPet'], []],
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
    { id: ids[0], name: 'old', requests: 2, deprecatedRequests: 1, lastDay, lastDeprecatedDay },
    { id: ids[1], name: 'new', requests: 3, deprecatedRequests: 0, lastDay, lastDeprecatedDay: null },
  ];
  expect(await runKeys(environment, 'usage')).toEqual([fresh, old]);
  expect(await runKeys(environment, 'usage', '--deprecated')).toEqual([old]);
  const row = (id = '', ...cells: string[]) => [id.slice(0, 8), ...cells].join(' +');
  expect(await printUsage(environment)).toMatch(
    new RegExp(
      `${row(ids[1], 'new', '3', lastDay, '0', '-')}\n${row(ids[0], 'old', '2', lastDay, '1', lastDeprecatedDay)}`,
    ),
  );
  expect(await printUsage(environment, '--deprecated', ids[0])).toContain('leave out the id');
});

test('keys usage of an unknown key says what to do', async () => {
  const program = run('cli', ['keys', 'usage', '00000000-0000-4000-8000-000000000000'], {
    DATABASE_URL: await createTestDatabase(),
  });
  expect(await program.ended).toBe(3);
  expect(program.output()).toContain('"keys list" shows all');
});
