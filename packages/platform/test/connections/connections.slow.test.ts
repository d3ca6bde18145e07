import { setTimeout as delay } from 'node:timers/promises';
import { type Caller, createCaller, post } from '@animal-store/platform/testing';
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { create, list, OTHER_TABLE, otherList, read, resources, TABLE } from '#operations-under-test';
import { callEverything, listEveryCall, nameOf, PROBES } from '../support/every-call.js';
import { createChecker } from '../support/openapi-checker.js';
import { createTestDatabase, startService, type TestService } from '../support/test-service.js';

/** As docs/capacity.md promises */
const MAX_CONNECTIONS = 16;
/** With requests of all kinds at once: some for reads, writes and keys, and some of the pool. */
const MIN_CONNECTIONS = 5;

/** A connection of the test's own to the same database */
let direct: pg.Client;
let databaseUrl: string;
let service: TestService;
let call: Caller;
/** The id of an item that is there: a create that fails has taken an id from the sequence. */
let itemId: number;

beforeEach(async () => {
  databaseUrl = await createTestDatabase();
  direct = new pg.Client(databaseUrl);
  await direct.connect();
  service = await startService({ databaseUrl });
  call = createCaller(service);
  itemId = (await call(create.path, post(create.body))).body.id as number;
});
afterEach(async () => {
  await service.close();
  await direct.end();
});

/** The server processes of the service's connections. */
async function listBackends(): Promise<number[]> {
  const { rows } = await direct.query<{ pid: number }>(
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'boatyard'",
  );
  return rows.map(({ pid }) => pid);
}

let sent = 0;
/** One request of each kind, for all pools. */
function sendOneOfEach(): Promise<number>[] {
  sent += 1;
  const requests = [
    call(list.path),
    call(read.pathOf(itemId)),
    call(otherList.path),
    call(create.path, post(create.body)),
    call(create.path, post(create.body, { 'idempotency-key': `create-${sent}` })),
  ];
  return requests.map(async (response) => (await response).status);
}

test('a locked table never takes more connections than documented, and is served again when it is free', async () => {
  const locker = new pg.Client(databaseUrl);
  await locker.connect();
  await locker.query(`BEGIN; LOCK TABLE ${TABLE}`);
  const pending: Promise<number>[] = [];
  const load = setInterval(() => pending.push(...sendOneOfEach()), 50);
  const counts: number[] = [];
  const endsAt = performance.now() + 6_000;
  await expect
    .poll(
      async () => {
        counts.push((await listBackends()).length);
        return performance.now() >= endsAt;
      },
      { interval: 100, timeout: 10_000 },
    )
    .toBe(true);
  clearInterval(load);
  await locker.end();
  expect(Math.max(...counts)).toBeLessThanOrEqual(MAX_CONNECTIONS);
  expect(Math.max(...counts)).toBeGreaterThanOrEqual(MIN_CONNECTIONS);
  const statuses = new Set(await Promise.all(pending));
  expect([...statuses].filter((status) => ![200, 201, 503].includes(status))).toEqual([]);
  expect(statuses).toContain(503);
  await expect.poll(async () => (await call(list.path)).status).toBe(200);
  const after = await Promise.all(sendOneOfEach());
  expect(after).toEqual([200, 200, 200, 201, 201]);
});

const otherReads = createChecker(resources).operations.filter(
  ({ method, path }) => method === 'GET' && path.startsWith(otherList.documentPath),
);

test.each([
  { table: TABLE, needing: [list.name, read.name] },
  { table: OTHER_TABLE, needing: otherReads.map(({ operationId }) => operationId) },
  { table: 'api_key_usage', needing: ['getKey'] },
])(
  'while the table $table is locked, and readiness is asked, every read of another one is answered',
  async ({ table, needing }) => {
    const { key, apiKey } = await service.keys.create({ name: 'endable', plan: 'pro' });
    const calls = await listEveryCall(call, { key, hint: apiKey.hint });
    const locker = new pg.Client(databaseUrl);
    await locker.connect();
    await locker.query(`BEGIN; LOCK TABLE ${table}`);
    // Nobody waits for those that need it.
    const reads = calls
      .filter(({ isRead }) => isRead)
      .map((each) => ({ ...each, isRead: !needing.some((name) => name === each.operation) }));
    const { statuses } = await callEverything({ url: service.url, call }, reads, 5, async () => 0);
    await locker.end();
    const expected = reads.map((each) => [nameOf(each), new Set([each.isRead ? 200 : 503])] as const);
    const probes = PROBES.map((path) => [path, new Set([path === '/health/ready' ? 503 : 200])] as const);
    expect(statuses).toEqual(new Map([...expected, ...probes]));
  },
);

test('while PostgreSQL ends one connection after the other, every operation answers or is a 503, over all protocols', {
  timeout: 60_000,
}, async ({ annotate }) => {
  const { key, apiKey } = await service.keys.create({ name: 'endable', plan: 'pro' });
  const calls = await listEveryCall(call, { key, hint: apiKey.hint });
  let [ended, isOver] = [0, false];
  const killing = (async () => {
    while (!isOver) {
      const pids = await listBackends();
      const pid = pids[ended % Math.max(1, pids.length)];
      if (pid !== undefined) await direct.query('SELECT pg_terminate_backend($1)', [pid]);
      ended += 1;
      await delay(50);
    }
  })();
  const { statuses, counts } = await callEverything({ url: service.url, call }, calls, 8, async () => 0);
  isOver = true;
  await killing;
  const failed = [...statuses].filter(([, found]) =>
    [...found].some((status) => status >= 500 && status !== 503),
  );
  expect(failed).toEqual([]);
  for (const each of calls.filter(({ isRead }) => isRead)) expect(statuses.get(nameOf(each))).toContain(200);
  await annotate(`${JSON.stringify(counts)}; ${ended} connections ended`);
});

test('when all connections are dead without a word, a single caller is served again', async () => {
  await Promise.all(Array.from({ length: 20 }, sendOneOfEach).flat());
  const stopped = await listBackends();
  expect(stopped.length).toBeGreaterThanOrEqual(MIN_CONNECTIONS);
  for (const pid of stopped) process.kill(pid, 'SIGSTOP');
  try {
    for (const path of [list.path, otherList.path, read.pathOf(itemId)]) {
      const status = async () => (await call(path)).status;
      await expect.poll(status, { interval: 10 }).not.toBe(503);
    }
    // Each pool finds out by itself.
    const init = post(create.body, { 'idempotency-key': 'dead' });
    await expect.poll(async () => (await call(create.path, init)).status, { interval: 10 }).toBe(201);
  } finally {
    for (const pid of stopped) process.kill(pid, 'SIGCONT');
  }
});
