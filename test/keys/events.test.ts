import { afterAll, afterEach, expect, test } from 'vitest';
import { openDatabase } from '../../src/database/client.js';
import { createAuthenticator } from '../../src/keys/authenticator.js';
import { publish, subscribe } from '../../src/keys/events.js';
import { createKeyStore } from '../../src/keys/store.js';
import { type Environment, type Program, run } from '../support/process.js';
import { startRedis } from '../support/redis.js';
import { createCaller, createTestDatabase } from '../support/test-service.js';

const redis = await startRedis();
afterAll(() => redis?.close());
const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const plain = { name: 'a key', plan: 'free', perMinute: null, perDay: null, expiresAt: null } as const;
const none: readonly string[] = [];

async function keys(environment: Environment, ...args: string[]) {
  const program = run('cli/program', ['keys', ...args, '--json'], environment);
  expect(await program.ended, program.output()).toBe(0);
  return JSON.parse(program.output());
}

async function startNode(environment: Environment): Promise<string> {
  const program: Program = run('main', [], { ...environment, APP_ENV: 'staging', PORT: '0' });
  closing.push(() => {
    program.child.kill('SIGTERM');
    return program.ended;
  });
  const [, url = ''] = await program.until(/listening on (http:[\d.:/]+)/);
  return url;
}

/** Issues a key, and lets two nodes learn of it and use it all the time: what they believe is never old. */
async function startTwoNodes(environment: Environment) {
  const { id, key } = await keys(environment, 'create', '--name', 'x', '--plan', 'business');
  const urls = await Promise.all([startNode(environment), startNode(environment)]);
  const calls = urls.map((url) => createCaller({ url, key }));
  const statuses = async () => Promise.all(calls.map(async (call) => (await call('/v1/pets')).status));
  expect(await statuses()).toEqual([200, 200]);
  const untilFelt = async (statusesThen: number[]) => {
    const begun = performance.now();
    await expect.poll(statuses, { timeout: 5_000, interval: 50 }).toEqual(statusesThen);
    return performance.now() - begun;
  };
  return { id, key, urls, untilFelt };
}

test.runIf(redis)('a revocation is felt within 2 s on two nodes with Redis', async () => {
  const environment = { DATABASE_URL: await createTestDatabase(), REDIS_URL: redis?.url ?? '' };
  const { id, untilFelt } = await startTwoNodes(environment);
  await keys(environment, 'revoke', id);
  expect(await untilFelt([401, 401])).toBeLessThan(2_000);
});

test.runIf(redis)(
  'a revocation is felt within 2 s on two nodes while Redis is down, and the command succeeds',
  async () => {
    const own = await startRedis();
    closing.push(() => own?.close());
    const environment = { DATABASE_URL: await createTestDatabase(), REDIS_URL: own?.url ?? '' };
    const { id, untilFelt } = await startTwoNodes(environment);
    await own?.kill();
    await keys(environment, 'revoke', id);
    expect(await untilFelt([401, 401])).toBeLessThan(2_000);
  },
);

test.runIf(redis)(
  'the command succeeds while Redis is stalled, and the nodes feel it within 2 s',
  async () => {
    const own = await startRedis();
    closing.push(() => own?.close());
    const environment = { DATABASE_URL: await createTestDatabase(), REDIS_URL: own?.url ?? '' };
    const { id, untilFelt } = await startTwoNodes(environment);
    own?.stall();
    await keys(environment, 'revoke', id);
    expect(await untilFelt([401, 401])).toBeLessThan(2_000);
  },
);

test('rotation, another plan and revocation are felt within 2 s on two nodes without Redis', async () => {
  const environment = { DATABASE_URL: await createTestDatabase() };
  const { id, key, urls, untilFelt } = await startTwoNodes(environment);
  await keys(environment, 'set-plan', id, '--plan', 'pro');
  for (const url of urls) {
    const limit = async () => (await createCaller({ url, key })('/v1/pets')).headers.get('ratelimit-policy');
    await expect.poll(limit, { timeout: 2_000 }).toContain('q=300');
  }
  const rotated = await keys(environment, 'rotate', id, '--overlap', '2s');
  for (const url of urls)
    expect((await createCaller({ url, key: rotated.key })('/v1/pets')).status).toBe(200);
  expect(await untilFelt([401, 401])).toBeLessThan(2_000);
  await keys(environment, 'revoke', id);
  for (const url of urls) {
    const status = async () => (await createCaller({ url, key: rotated.key })('/v1/pets')).status;
    await expect.poll(status, { timeout: 2_000 }).toBe(401);
  }
});

/** A node that would believe what it knows for a minute, and how a change is told to it. */
async function listen(databaseUrl: string, redisUrls: readonly string[]) {
  const database = openDatabase(databaseUrl, () => {});
  closing.push(() => database.close());
  const store = createKeyStore(database, 'as_test_');
  const authenticator = createAuthenticator({ store, prefix: 'as_test_', now: Date.now, ttlMs: 60_000 });
  let heard = 0;
  const onChange = (keyId: string) => {
    heard += 1;
    authenticator.forget(keyId);
  };
  const subscription = subscribe({ databaseUrl, redisUrls, onChange, warn: () => {} });
  closing.push(() => subscription.close());
  const tell = (keyId: string) => publish({ redisUrls, pool: database.pool }, keyId);
  const untilSubscribed = () =>
    expect
      .poll(
        async () => {
          const before = heard;
          await tell('nobody');
          await new Promise((resolve) => setTimeout(resolve, 50));
          return heard > before;
        },
        { timeout: 8_000 },
      )
      .toBe(true);
  const works = async (key: string) =>
    authenticator.authenticate(`Bearer ${key}`).then(
      () => true,
      () => false,
    );
  return { database, store, authenticator, tell, untilSubscribed, works };
}

test.each([
  ['PostgreSQL', none],
  ['Redis', redis === null ? null : [redis.url]],
])('an event in %s makes a change felt at once, whatever is believed', async (_place, redisUrls) => {
  if (redisUrls === null) return;
  const { store, tell, untilSubscribed, works } = await listen(await createTestDatabase(), redisUrls);
  await untilSubscribed();
  const { key, apiKey } = await store.create(plain);
  const other = await store.create(plain);
  expect([await works(key), await works(other.key)]).toEqual([true, true]);
  await store.revoke(apiKey.id, new Date());
  await store.revoke(other.apiKey.id, new Date());
  expect(await works(key)).toBe(true);
  await tell(apiKey.id);
  await expect.poll(() => works(key), { timeout: 500, interval: 20 }).toBe(false);
  expect(await works(other.key)).toBe(true);
});

test('a lost subscription in PostgreSQL is made again', async () => {
  const { database, untilSubscribed } = await listen(await createTestDatabase(), none);
  await untilSubscribed();
  const { rows } = await database.pool.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE application_name = 'animal-store keys' AND datname = current_database()`,
  );
  expect(rows).toHaveLength(1);
  await untilSubscribed();
});

test.runIf(redis)('a lost subscription in Redis is made again', async () => {
  const own = await startRedis();
  closing.push(() => own?.close());
  const { untilSubscribed } = await listen(await createTestDatabase(), [own?.url ?? '']);
  await untilSubscribed();
  await own?.kill();
  await own?.run();
  await untilSubscribed();
});

test('a look-up that a change overtakes is not believed', async () => {
  const database = openDatabase(await createTestDatabase(), () => {});
  closing.push(() => database.close());
  const store = createKeyStore(database, 'as_test_');
  const { key, apiKey } = await store.create(plain);
  let answer = () => {};
  const isAnswered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const findByHash: typeof store.findByHash = async (hash) => {
    const found = await store.findByHash(hash);
    await isAnswered;
    return found;
  };
  const authenticator = createAuthenticator({
    store: { ...store, findByHash },
    prefix: 'as_test_',
    now: Date.now,
    ttlMs: 60_000,
  });
  const early = authenticator.authenticate(`Bearer ${key}`);
  await expect.poll(() => store.find(apiKey.id)).toBeDefined();
  await store.revoke(apiKey.id, new Date());
  authenticator.forget(apiKey.id);
  answer();
  await early.catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, 10));
  await expect(authenticator.authenticate(`Bearer ${key}`)).rejects.toMatchObject({ status: 401 });
});
