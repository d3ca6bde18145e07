import { randomUUID } from 'node:crypto';
import { createLimiter, type LimiterOptions } from '@animal-store/limits';
import { canStartRedis, findRedis } from '@animal-store/limits/testing';
import { createCaller } from '@animal-store/platform/testing';
import { afterEach, describe, expect, test } from 'vitest';
import { definition, list } from '#operations-under-test';
import {
  admin,
  closeAll,
  node,
  onClose,
  reaches,
  server,
} from '../../../limits/test/support/limiter-nodes.js';
import { createTestDatabase, startService } from '../support/test-service.js';

const redis = await findRedis();
const silent = { info: () => {}, warn: () => {} };
const newPrefix = () => `bans-test-${randomUUID()}`;

afterEach(closeAll);

async function openLimiter(
  url: string,
  prefix: string,
  options: Partial<Omit<LimiterOptions, 'windows'>> = {},
) {
  const limiter = await createLimiter({
    ...options,
    windows: definition.windows,
    redisUrls: [url],
    log: silent,
    prefix,
  });
  onClose(() => limiter.close());
  await reaches(limiter, 'redis');
  return limiter;
}

const subject = { kind: 'key', id: 'key-of-the-test', limits: { perMinute: 300, perDay: 10_000 } } as const;

describe.skipIf(redis === undefined)('over two nodes with Redis', () => {
  const url = redis?.url ?? '';

  test('a Pro key with 500 denials within a minute is banned on both, though neither has denied enough by itself', async () => {
    const prefix = newPrefix();
    const databaseUrl = await createTestDatabase();
    const limiters = await Promise.all([1, 2].map(() => openLimiter(url, prefix)));
    const nodes = await Promise.all(limiters.map((limiter) => startService({ databaseUrl, limiter })));
    for (const each of nodes) onClose(() => each.close());
    const { key, apiKey } =
      (await nodes[0]?.keys.create({ name: 'loop', plan: 'pro' })) ?? expect.unreachable();
    const calls = nodes.map(({ url: of }) => createCaller({ url: of, key }));
    const codes: unknown[] = [];
    const send = async (call: (typeof calls)[number]) => {
      const { status, body } = await call(list.path);
      codes.push(status === 200 ? 200 : body.code);
    };
    for (let n = 0; n < 400; n += 20)
      await Promise.all(calls.flatMap((call) => Array.from({ length: 20 }, () => send(call))));
    // Exactly the limit, as ever; what comes after the ban has begun is not a denial of the limit any more.
    expect(codes.filter((code) => code === 200)).toHaveLength(300);
    const ban = async () => (await nodes[0]?.keys.find(apiKey.id))?.bannedUntil ?? null;
    await expect.poll(ban).not.toBeNull();
    for (const call of calls)
      await expect.poll(async () => (await call(list.path)).body.code).toBe('api_key_banned');
    expect((await nodes[0]?.keys.find(apiKey.id))?.banSeconds).toBe(300);
  });

  test('the denial that makes the sum reach the limit bans, and none before it', async () => {
    const prefix = newPrefix();
    const [a, b] = await Promise.all([openLimiter(url, prefix), openLimiter(url, prefix)]);
    const reached: string[] = [];
    const deny = (limiter: typeof a, count: number) =>
      Promise.all(
        Array.from({ length: count }, () => limiter.countDenied(subject, 1, () => reached.push('reached'))),
      );
    const told = async () => Number(await admin({ url }).hget(`${prefix}:denied:{${subject.id}}`, 'minute'));
    await Promise.all([deny(a, 150), deny(b, 149)]);
    expect([await told(), reached]).toEqual([299, []]);
    await deny(a, 1);
    // Counted from 0 again: in Redis, and on the other node once a request finds the ban there
    expect([await told(), reached]).toEqual([0, ['reached']]);
    b.resetDenied(subject);
    await deny(b, 10);
    expect(await told()).toBe(10);
    expect(reached).toEqual(['reached']);
  });

  test('the limit is reached once: no question that follows reaches it again', async () => {
    const clock = { aheadMs: 0 };
    const limiter = await openLimiter(url, newPrefix(), {
      clock: () => Math.floor(performance.now()) + clock.aheadMs,
    });
    let reached = 0;
    const deny = (cost: number) =>
      limiter.countDenied(subject, cost, () => {
        reached += 1;
      });
    await deny(299);
    await deny(1);
    expect(reached).toBe(1);
    // From now on, whatever Redis has replied is too old to be repeated.
    clock.aheadMs = 2_000;
    await limiter.consume(subject, 1);
    expect(reached).toBe(1);
    await deny(299);
    expect(reached).toBe(1);
    await deny(1);
    expect(reached).toBe(2);
  });
});

test.skipIf(!canStartRedis())(
  'while Redis is away each node counts by itself, and tells it when it is back',
  async () => {
    const started = await server();
    const [a, b] = [await node([started.url]), await node([started.url])];
    let reached = 0;
    const deny = ({ limiter }: typeof a, count: number) =>
      limiter.countDenied(subject, count, () => {
        reached += 1;
      });
    await started.kill();
    for (const { limiter } of [a, b]) await reaches(limiter, 'degraded');
    deny(a, 200);
    deny(b, 200);
    expect(reached).toBe(0);
    deny(a, 100);
    expect(reached).toBe(1);
    await started.run();
    for (const { limiter } of [a, b]) await reaches(limiter, 'redis');
    deny(b, 50);
    const denied = () => admin(started).hget(`limits:denied:{${subject.id}}`, 'minute');
    await expect.poll(async () => Number(await denied())).toBe(250);
  },
);
