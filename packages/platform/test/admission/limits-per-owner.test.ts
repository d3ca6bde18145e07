import { randomUUID } from 'node:crypto';
import { createLimiter } from '@animal-store/limits';
import { findRedis } from '@animal-store/limits/testing';
import { type Caller, createCaller, toolCall } from '@animal-store/platform/testing';
import { pino } from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { definition, list } from '#operations-under-test';
import {
  createTestDatabase,
  startService,
  type TestService,
  type TestServiceOptions,
} from '../support/test-service.js';

const log = pino({ level: 'silent' });
const redis = await findRedis();
const closers: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Services on one database, which count together where Redis lets them. */
async function serve(count: number, redisUrls: readonly string[], options: TestServiceOptions = {}) {
  const databaseUrl = await createTestDatabase();
  const prefix = `test:${randomUUID()}`;
  const services: TestService[] = [];
  for (let n = 0; n < count; n += 1) {
    const limiter = await createLimiter({ windows: definition.windows, redisUrls, log, prefix });
    if (redisUrls.length > 0) await expect.poll(() => limiter.state).toBe('redis');
    const service = await startService({ databaseUrl, limiter, limitsPer: 'owner', ...options });
    closers.push(() => service.close());
    services.push(service);
  }
  return services;
}

async function issue({ keys }: TestService, owner: string | null, perMinute = 60): Promise<string> {
  const { key } = await keys.create({ name: 'x', owner, plan: 'enterprise', perMinute, perDay: 1_000_000 });
  return key;
}

/** One request over each protocol */
const ASK: readonly ((call: Caller, key: string) => ReturnType<Caller>)[] = [
  (call, key) => call(list.path, { key }),
  (call, key) => call(list.trpc, { key }),
  (call, key) => call('/mcp', { ...toolCall(list.name, { limit: 1 }), key }),
];

const [first = expect.unreachable()] = ASK;

describe.each([
  { where: 'one process', nodes: 1, urls: [] as string[], isMissing: false },
  {
    where: 'three nodes over Redis',
    nodes: 3,
    urls: redis ? [redis.url] : [],
    isMissing: redis === undefined,
  },
])('$where', ({ nodes, urls, isMissing }) => {
  test.skipIf(isMissing)(
    'all keys of an owner together get exactly the limit, over all protocols',
    async () => {
      const services = await serve(nodes, urls);
      const [service = expect.unreachable()] = services;
      const calls = services.map(createCaller);
      // What a cluster of Redis would take for a hash tag
      const owners = ['cus_{acme}', 'cus_🐈'];
      for (const owner of owners) {
        const keys = [await issue(service, owner), await issue(service, owner), await issue(service, owner)];
        const statuses = await Promise.all(
          Array.from({ length: 200 }, async (_, n) => {
            const [ask, call, key] = [ASK[n % 3], calls[n % nodes], keys[Math.floor(n / 3) % 3]];
            return (await ask?.(call as Caller, key as string))?.status;
          }),
        );
        expect(statuses.filter((status) => status === 200)).toHaveLength(60);
        expect(statuses.filter((status) => status === 429)).toHaveLength(140);
      }
    },
  );
});

test('each request is held to the limits of its own key, counted together with the others', async () => {
  const [service = expect.unreachable()] = await serve(1, []);
  const call = createCaller(service);
  const [small, large] = [await issue(service, 'acme', 20), await issue(service, 'acme', 50)];
  for (let n = 0; n < 30; n += 1) expect((await first(call, large)).status).toBe(200);
  const denied = await first(call, small);
  expect([denied.status, denied.headers.get('x-ratelimit-limit')]).toEqual([429, '20']);
  const last = await first(call, large);
  expect([last.status, last.headers.get('x-ratelimit-remaining')]).toEqual([200, '19']);
});

test('keys without an owner, and those of other owners, have limits of their own', async () => {
  const [service = expect.unreachable()] = await serve(1, []);
  const call = createCaller(service);
  for (const owner of [null, null, 'acme', 'other'])
    expect((await first(call, await issue(service, owner, 3))).headers.get('x-ratelimit-remaining')).toBe(
      '2',
    );
});

test('by default each key of an owner has its limits for itself', async () => {
  const [service = expect.unreachable()] = await serve(1, [], { limitsPer: 'key' });
  const call = createCaller(service);
  for (let n = 0; n < 2; n += 1) {
    const key = await issue(service, 'acme', 3);
    expect((await first(call, key)).headers.get('x-ratelimit-remaining')).toBe('2');
    expect((await call('/v1/key', { key })).body.limits[0]).toMatchObject({ remaining: 2, shared: false });
  }
});

test('getKey says that limits are shared and what is left of them; its free requests and a ban are the key’s own', async () => {
  const [service = expect.unreachable()] = await serve(1, [], { anonymousPerMinute: 4 });
  const call = createCaller(service);
  const [one, two, alone] = [
    await issue(service, 'acme', 5),
    await issue(service, 'acme', 5),
    await issue(service, null, 5),
  ];
  for (let n = 0; n < 5; n += 1) await first(call, one);
  const limits = async (key: string) => (await call('/v1/key', { key })).body.limits[0];
  expect(await limits(two)).toMatchObject({ limit: 5, remaining: 0, shared: true });
  expect(await limits(alone)).toMatchObject({ limit: 5, remaining: 5, shared: false });
  for (let n = 0; n < 4; n += 1) await call('/v1/key', { key: one });
  expect((await call('/v1/key', { key: one })).status).toBe(429);
  expect((await call('/v1/key', { key: two })).status).toBe(200);

  // As many denials as the limit allows ban a key.
  for (let n = 0; n < 6; n += 1) await first(call, one);
  expect((await first(call, one)).body.code).toBe('api_key_banned');
  expect((await first(call, two)).body.code).toBe('rate_limit_exceeded');
});
