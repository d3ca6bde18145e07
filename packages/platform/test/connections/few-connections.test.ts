import {
  type Caller,
  createCaller,
  execute,
  post,
  untilListening,
  untilServed,
} from '@animal-store/platform/testing';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { create, definition, list, newItem, otherList, read } from '#operations-under-test';
import { applyGrants } from '../../src/migrations/grants.js';
import { runKeys, UNREACHED_LIMITS } from '../support/process.js';
import { setUpServiceProcesses } from '../support/service-processes.js';
import { createTestDatabase, startService } from '../support/test-service.js';

const ROLE = `few_${process.pid}`;
/** What a process opens without a limit */
const ALL = 12;
/** As many as there are pools */
const LEAST = 4;

const processes = setUpServiceProcesses();
let ownerUrl: string;
let databaseUrl: string;

beforeEach(async () => {
  ownerUrl = await createTestDatabase();
  await execute(ownerUrl, `CREATE ROLE ${ROLE} LOGIN PASSWORD 'few'`);
  await applyGrants(definition.identity.grants, ownerUrl, ROLE, 'service');
  databaseUrl = Object.assign(new URL(ownerUrl), { username: ROLE, password: 'few' }).href;
});
afterEach(() => execute(ownerUrl, `DROP OWNED BY ${ROLE}; DROP ROLE ${ROLE}`));

const allow = (count: number) => execute(ownerUrl, `ALTER ROLE ${ROLE} CONNECTION LIMIT ${count}`);
const end = () =>
  execute(ownerUrl, `SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity WHERE usename = '${ROLE}'`);

/** Requests for every pool, several at once: a busy machine may make one of them late. */
async function expectServed(call: Caller, name: string): Promise<void> {
  const requests = Array.from({ length: 4 }, (_, n) => [
    () => call(list.path),
    () => call(read.pathOf(1)),
    () => call(otherList.path),
    () => call('/v1/key'),
    () => call(create.path, post(newItem(`${name} ${n}`))),
    () => call(create.trpc, post(newItem(`${name} ${n}`), { 'idempotency-key': `${name}-${n}` })),
  ]);
  const responses = await Promise.all(requests.flat().map(untilServed));
  const statuses = Array(4).fill([200, 200, 200, 200, 201, 200]).flat();
  expect(responses.map(({ status }) => status)).toEqual(statuses);
  expect((await untilServed(() => call('/health/ready', { key: null }))).status).toBe(200);
}

/** What the log says of requests and probes that failed. */
function createLog() {
  const failures: string[] = [];
  const write = (line: string) => {
    const { err, reason } = JSON.parse(line);
    failures.push(err?.message ?? reason ?? '');
  };
  return { failures, log: pino({ level: 'warn' }, { write }) };
}

const LIMITS = [20, 5, 4];

test.each(LIMITS.flatMap((limit) => [false, true].map((isSaid) => ({ limit, isSaid }))))(
  'where the role may have $limit connections, requests of all kinds are served, more slowly, and readiness is 200 (connection_limit says so: $isSaid)',
  async ({ limit, isSaid }) => {
    const { failures, log } = createLog();
    const url = new URL(databaseUrl);
    if (isSaid) url.searchParams.set('connection_limit', String(limit));
    const service = await startService({ databaseUrl: url.href, log });
    // It has issued the key.
    await service.database.close();
    await allow(limit);
    await end();
    const call = createCaller(service);
    const createFirst = async () => (await call(create.path, post(newItem('first')))).status;
    await expect.poll(createFirst).toBe(201);
    for (const name of ['one', 'two', 'three']) await expectServed(call, name);
    const most = isSaid ? limit : Math.min(limit, ALL);
    expect(service.serviceDatabase.countConnections('totalCount')).toBeLessThanOrEqual(most);
    // After they are lost, whichever pool comes first must leave the others theirs.
    await end();
    await expectServed(call, 'again');
    // No caller has noticed that one was refused.
    expect(failures.filter((message) => /too many/i.test(message))).toEqual([]);
    await service.close();
  },
);

test('a process that was refused connections has all of them again soon after it may', async () => {
  const service = await startService({ databaseUrl });
  await service.database.close();
  const call = createCaller(service);
  await untilServed(() => call(create.path, post(newItem('first'))));
  await allow(5);
  await end();
  const refusedUntil = performance.now() + 1_000;
  let rounds = 0;
  const serve = () => expectServed(call, `round-${rounds++}`);
  while (performance.now() < refusedUntil) await serve();
  const { pool, reads, writes, keys, countConnections } = service.serviceDatabase;
  // A busy machine may take longer to open what it may.
  const serveAndCount = async () => {
    await serve();
    return countConnections('totalCount');
  };
  await expect.poll(serveAndCount, { timeout: 20_000 }).toBe(5);
  await allow(-1);
  const pools = [pool, reads.pool, writes.pool, keys.pool];
  const takeAll = async () => {
    const taking = pools.flatMap((each) => Array.from({ length: each.size }, () => each.connect()));
    const taken = await Promise.allSettled(taking);
    for (const each of taken) if (each.status === 'fulfilled') each.value.release();
    return countConnections('totalCount');
  };
  await expect.poll(takeAll, { timeout: 5_000 }).toBe(ALL);
  await service.close();
});

test('a pool whose connection was found dead when others had taken its place gets one of theirs', async () => {
  const service = await startService({ databaseUrl });
  await service.database.close();
  const { pool, reads, writes, keys, checkStatements } = service.serviceDatabase;
  const sum = () => [pool, reads.pool, writes.pool, keys.pool].reduce((total, { held }) => total + held, 0);
  await allow(LEAST);
  await end();
  const isReady = () =>
    checkStatements().then(
      () => true,
      () => false,
    );
  await expect.poll(isReady, { timeout: 10_000 }).toBe(true);
  // PostgreSQL has ended it, and the pool does not know yet.
  const dead = await pool.connect();
  const { rows } = await dead.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  await execute(ownerUrl, `SELECT pg_terminate_backend(${rows[0]?.pid}, 2000)`);
  const takePlace = async () => {
    const taken = await Promise.allSettled([reads.pool.connect(), reads.pool.connect()]);
    for (const each of taken) if (each.status === 'fulfilled') each.value.release();
    return reads.pool.held;
  };
  await expect.poll(takePlace, { timeout: 10_000 }).toBe(2);
  dead.release(true);
  expect([pool.held, sum()]).toEqual([0, LEAST]);
  await expect.poll(isReady, { timeout: 10_000 }).toBe(true);
  expect([pool.held, sum()]).toEqual([1, LEAST]);
  await service.close();
});

test('where the database allows fewer connections than there are pools, a process starts, is not ready, says why, and goes on trying; with as many, one line of the log says so', async () => {
  const database = new URL(ownerUrl).pathname.slice(1);
  const limitDatabase = (count: number) =>
    execute(ownerUrl, `ALTER DATABASE ${database} CONNECTION LIMIT ${count}`);
  const environment = { DATABASE_URL: databaseUrl, APP_ENV: 'staging' };
  const issue = ['create', '--name', 'x', ...UNREACHED_LIMITS];
  const { key } = await runKeys({ ...environment, DATABASE_URL: ownerUrl }, ...issue);
  await limitDatabase(3);
  const service = processes.start(environment);
  const call = createCaller({ url: await untilListening(service), key });
  const readReadiness = async () => (await call('/health/ready', { key: null })).status;
  expect(await readReadiness()).toBe(503);
  await service.until(/too many connections for database[^\n]*"not ready: /);
  await limitDatabase(4);
  await expect.poll(readReadiness).toBe(200);
  await untilServed(() => call(create.path, post(newItem('first'))));
  const readLines = () =>
    service
      .output()
      .split('\n')
      .filter((line) => line.includes('no further connection'));
  let rounds = 0;
  const serve = async () => {
    await expectServed(call, `round-${rounds++}`);
    return readLines().length;
  };
  await expect.poll(serve, { timeout: 30_000 }).toBe(1);
  await serve();
  const said = readLines();
  expect(said.length).toBe(1);
  expect(JSON.parse(said[0] ?? '')).toMatchObject({
    level: 40,
    msg: expect.stringMatching(
      /^the database allows no further connection: .* with 4 of up to 12 \(connection_limit=4 in DATABASE_URL/,
    ),
  });
});
