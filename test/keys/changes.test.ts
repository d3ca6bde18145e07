import { afterAll, afterEach, expect, test } from 'vitest';
import { execute } from '../support/execute.js';
import { type Environment, run, runKeys, untilListening } from '../support/process.js';
import { startRedis } from '../support/redis.js';
import { createCaller, createTestDatabase } from '../support/test-service.js';

// That it takes 2 s at most is shown in test/contract/promised-times.test.ts.

const redis = await startRedis();
afterAll(() => redis?.close());
const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function startNode(environment: Environment): Promise<string> {
  const program = run('main', [], { ...environment, APP_ENV: 'staging', PORT: '0' });
  closing.push(() => {
    program.child.kill('SIGTERM');
    return program.ended;
  });
  return untilListening(program);
}

/** Issues a key and starts two nodes that use it all the time, so that their cached lookups never expire unused. */
async function startTwoNodes(environment: Environment, ...plan: string[]) {
  const { id, key } = await runKeys(environment, 'create', '--name', 'x', '--plan', ...plan);
  const urls = await Promise.all([startNode(environment), startNode(environment)]);
  const calls = urls.map((url) => createCaller({ url, key }));
  const codes = () =>
    Promise.all(
      calls.map(async (call) => {
        const { status, body } = await call('/v1/pets');
        return status === 200 ? 200 : body.code;
      }),
    );
  const untilBoth = (code: unknown) => expect.poll(codes, { interval: 50 }).toEqual([code, code]);
  return { id, key, urls, calls, untilBoth };
}

test.runIf(redis)('a revocation takes effect on two nodes with Redis', async () => {
  const environment = { DATABASE_URL: await createTestDatabase(), REDIS_URL: redis?.url ?? '' };
  const { id, untilBoth } = await startTwoNodes(environment, 'business');
  await untilBoth(200);
  await runKeys(environment, 'revoke', id);
  await untilBoth('invalid_api_key');
});

test.runIf(redis).each([
  ['down', (server: NonNullable<typeof redis>) => server.kill()],
  ['stalled', (server: NonNullable<typeof redis>) => server.stall()],
] as const)(
  'while Redis is %s, a revocation succeeds and takes effect on two nodes',
  async (_state, fail) => {
    const own = await startRedis();
    closing.push(() => own?.close());
    const environment = { DATABASE_URL: await createTestDatabase(), REDIS_URL: own?.url ?? '' };
    const { id, untilBoth } = await startTwoNodes(environment, 'business');
    await untilBoth(200);
    if (own) await fail(own);
    await runKeys(environment, 'revoke', id);
    await untilBoth('invalid_api_key');
  },
);

test('rotation, a change of plan and revocation take effect on two nodes without Redis', async () => {
  const environment = { DATABASE_URL: await createTestDatabase() };
  const { id, key, urls, untilBoth } = await startTwoNodes(environment, 'business');
  await untilBoth(200);
  await runKeys(environment, 'set-plan', id, '--plan', 'pro');
  for (const url of urls) {
    const policy = async () => (await createCaller({ url, key })('/v1/pets')).headers.get('ratelimit-policy');
    await expect.poll(policy).toContain('q=300');
  }
  const rotated = await runKeys(environment, 'rotate', id, '--overlap', '2s');
  for (const url of urls)
    expect((await createCaller({ url, key: rotated.key })('/v1/pets')).status).toBe(200);
  await untilBoth('invalid_api_key');
  await runKeys(environment, 'revoke', id);
  for (const url of urls) {
    const status = async () => (await createCaller({ url, key: rotated.key })('/v1/pets')).status;
    await expect.poll(status).toBe(401);
  }
});

test('narrowed scopes take effect on two nodes, whether by the command line or by SQL', async () => {
  const environment = { DATABASE_URL: await createTestDatabase() };
  const { id, untilBoth } = await startTwoNodes(environment, 'business');
  await untilBoth(200);
  await runKeys(environment, 'set-scopes', id, '--scopes', 'pets:write,orders:read');
  await untilBoth('insufficient_scope');
  for (const [scopes, code] of [
    ['{pets:read}', 200],
    ['{pets:write}', 'insufficient_scope'],
  ]) {
    await execute(environment.DATABASE_URL, 'UPDATE api_keys SET scopes = $1 WHERE id = $2', [scopes, id]);
    await untilBoth(code);
  }
});

test('a ban that one node starts holds on every node, and ends there of unban', async () => {
  const environment = { DATABASE_URL: await createTestDatabase() };
  const limits = ['enterprise', '--per-minute', '3', '--per-day', '1000'];
  const { id, calls, untilBoth } = await startTwoNodes(environment, ...limits);
  for (let n = 0; n < 7; n += 1) await calls[0]?.('/v1/pets');
  await untilBoth('api_key_banned');
  const shown = await runKeys(environment, 'show', id);
  expect(shown).toMatchObject({ banSeconds: 300, nextBanSeconds: 600 });
  expect(await runKeys(environment, 'unban', id)).toMatchObject({ bannedUntil: null, banSeconds: null });
  const isBanned = async () =>
    (await Promise.all(calls.map((call) => call('/v1/pets')))).some(
      ({ body }) => body.code === 'api_key_banned',
    );
  await expect.poll(isBanned, { interval: 500 }).toBe(false);
});

test.runIf(redis)('a ban outlasts a restart of Redis and of the node that began it', async () => {
  const own = await startRedis();
  closing.push(() => own?.close());
  const environment = { DATABASE_URL: await createTestDatabase(), REDIS_URL: own?.url ?? '' };
  const limits = ['enterprise', '--per-minute', '3', '--per-day', '1000'];
  const { key, calls, untilBoth } = await startTwoNodes(environment, ...limits);
  for (let n = 0; n < 7; n += 1) await calls[0]?.('/v1/pets');
  await untilBoth('api_key_banned');
  await own?.kill();
  await own?.run();
  const url = await startNode(environment);
  expect((await createCaller({ url, key })('/v1/pets')).body.code).toBe('api_key_banned');
});
