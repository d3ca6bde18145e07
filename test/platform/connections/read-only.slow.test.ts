import { afterEach, beforeEach, expect, test } from 'vitest';
import type { KeyStore } from '../../../src/platform/keys/store.js';
import { type EveryCall, listEveryCall, nameOf } from '../../support/every-call.js';
import { create, list } from '../../support/operations-under-test.js';
import { PostgresServer } from '../../support/postgres-server.js';
import { runKeys, UNREACHED_LIMITS, untilListening } from '../../support/process.js';
import { setUpServiceProcesses } from '../../support/service-processes.js';
import { type Caller, createCaller, post, startService } from '../../support/test-service.js';

type IssuedKey = Awaited<ReturnType<KeyStore['create']>>;

let servers: PostgresServer[];

beforeEach(async () => {
  servers = [await PostgresServer.start()];
});
afterEach(async () => {
  for (const server of servers.reverse()) await server.close();
});
// Its services stop before the servers do.
const processes = setUpServiceProcesses();

async function expectReadsOnly(call: Caller, calls: readonly EveryCall[]): Promise<void> {
  for (const each of calls)
    expect([nameOf(each), await each.send(call)]).toEqual([nameOf(each), each.isRead ? 200 : 503]);
  for (const path of [list.path, `${list.path}?${list.filterQuery}`, list.trpc])
    expect([path, (await call(path)).status]).toEqual([path, 200]);
  const creates = [
    await call(create.path, post(create.body)),
    await call(create.path, post(create.body, { 'idempotency-key': 'read-only' })),
    await call(create.trpc, post(create.body)),
  ];
  expect(creates.map(({ status }) => status)).toEqual([503, 503, 503]);
  expect(creates.map(({ headers }) => headers.get('retry-after'))).toEqual(['1', '1', '1']);
}

/** Adds what the examples name, and lists all calls. */
async function prepare(call: Caller, { key, apiKey }: IssuedKey): Promise<EveryCall[]> {
  for (let n = 0; n < 10; n += 1) expect((await call(create.path, post(create.body))).status).toBe(201);
  return listEveryCall(call, { key, hint: apiKey.hint });
}

async function readReadiness(call: Caller) {
  const { status, body } = await call('/health/ready', { key: null });
  return [status, body.database];
}

const createStatus = (call: Caller) => async () =>
  (await call(create.path, post(create.body, { 'idempotency-key': 'read-only' }))).status;

test('default_transaction_read_only is switched on and off: reads 200, creates 503 on open connections too, and back', async ({
  annotate,
}) => {
  const [server] = servers as [PostgresServer];
  const service = await startService({ databaseUrl: server.url });
  const call = createCaller(service);
  const calls = await prepare(call, await service.keys.create({ name: 'endable', plan: 'pro' }));
  await server.query('ALTER SYSTEM SET default_transaction_read_only = on');
  await server.reload();
  await expect.poll(async () => (await call(create.path, post(create.body))).status).toBe(503);
  await expectReadsOnly(call, calls);
  expect(await readReadiness(call)).toEqual([200, 'ok']);
  await server.query('ALTER SYSTEM RESET default_transaction_read_only');
  await server.reload();
  const switchedAt = performance.now();
  await expect.poll(createStatus(call), { interval: 20 }).toBe(201);
  await annotate(`creates again ${Math.round(performance.now() - switchedAt)} ms after the reload`);
  await service.close();
});

test('a hot standby: the service starts on it and is not ready, reads 200, creates 503, until it is promoted', async ({
  annotate,
}) => {
  const [primary] = servers as [PostgresServer];
  const issue = ['create', '--name', 'reader', ...UNREACHED_LIMITS];
  const { key } = await runKeys({ DATABASE_URL: primary.url, APP_ENV: 'staging' }, ...issue);
  const before = await startService({ databaseUrl: primary.url });
  const calls = await prepare(
    createCaller(before),
    await before.keys.create({ name: 'endable', plan: 'pro' }),
  );
  await before.close();
  const standby = await primary.startStandby();
  servers.push(standby);
  const service = processes.start({ DATABASE_URL: standby.url, APP_ENV: 'staging' });
  const call = createCaller({ url: await untilListening(service), key });
  await expectReadsOnly(call, calls);
  expect(await readReadiness(call)).toEqual([503, 'standby']);
  await service.until(/leads to a standby.*not ready: the database cannot be used/);
  await standby.query('SELECT pg_promote()');
  const promotedAt = performance.now();
  await expect.poll(createStatus(call), { interval: 20 }).toBe(201);
  await annotate(`creates again ${Math.round(performance.now() - promotedAt)} ms after the promotion`);
  expect(await readReadiness(call)).toEqual([200, 'ok']);
  expect((await call(create.path, post(create.body))).status).toBe(201);
});
