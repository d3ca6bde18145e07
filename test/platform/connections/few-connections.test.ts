import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { applyGrants } from '../../../src/platform/migrations/grants.js';
import { execute } from '../../support/execute.js';
import { create, list, newItem, otherList, read } from '../../support/operations-under-test.js';
import { runKeys, UNREACHED_LIMITS, untilListening } from '../../support/process.js';
import { setUpServiceProcesses } from '../../support/service-processes.js';
import {
  type Caller,
  createCaller,
  createTestDatabase,
  post,
  startService,
  untilServed,
} from '../../support/test-service.js';

const ROLE = `few_${process.pid}`;
/** What a process opens without a limit */
const ALL = 12;

const processes = setUpServiceProcesses();
let ownerUrl: string;
let databaseUrl: string;

beforeEach(async () => {
  ownerUrl = await createTestDatabase();
  await execute(ownerUrl, `CREATE ROLE ${ROLE} LOGIN PASSWORD 'few'`);
  await applyGrants(ownerUrl, ROLE, 'service');
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
  const write = (line: string) => void failures.push(JSON.parse(line).err?.message ?? '');
  return { failures, log: pino({ level: 'warn' }, { write }) };
}

test.each([20, 10, 8, 5, 3])(
  'where the role may have %i connections, requests of all kinds are served, more slowly, and readiness is 200',
  async (limit) => {
    const { failures, log } = createLog();
    const service = await startService({ databaseUrl, log });
    // It has issued the key.
    await service.database.close();
    await allow(limit);
    await end();
    const call = createCaller(service);
    const createFirst = async () => (await call(create.path, post(newItem('first')))).status;
    await expect.poll(createFirst).toBe(201);
    for (const name of ['one', 'two', 'three']) await expectServed(call, name);
    expect(service.serviceDatabase.countConnections('totalCount')).toBeLessThanOrEqual(Math.min(limit, ALL));
    // After they are lost, whichever pool comes first takes all that there may be.
    await end();
    await expectServed(call, 'again');
    // No caller has noticed that one was refused.
    expect(failures.filter((message) => /too many/i.test(message))).toEqual([]);
    await service.close();
  },
);

test('where the database allows fewer connections, the log says so in one line', async () => {
  const database = new URL(ownerUrl).pathname.slice(1);
  const limitDatabase = (count: number) =>
    execute(ownerUrl, `ALTER DATABASE ${database} CONNECTION LIMIT ${count}`);
  const environment = { DATABASE_URL: databaseUrl, APP_ENV: 'staging' };
  const issue = ['create', '--name', 'x', ...UNREACHED_LIMITS];
  const { key } = await runKeys({ ...environment, DATABASE_URL: ownerUrl }, ...issue);
  // Fewer than there are pools, so that one is refused however quick the machine is
  await limitDatabase(3);
  const service = processes.start(environment);
  const call = createCaller({ url: await untilListening(service), key });
  await untilServed(() => call(create.path, post(newItem('first'))));
  for (const name of ['one', 'two']) await expectServed(call, name);
  const lines = service.output().split('\n');
  const said = lines.filter((line) => line.includes('no further connection'));
  expect(said.length).toBe(1);
  expect(JSON.parse(said[0] ?? '')).toMatchObject({
    level: 40,
    msg: expect.stringMatching(/^the database allows no further connection: .* with [1-5] of up to 12$/),
  });
});
