import { WINDOWS } from '@animal-store/definition/plans';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { list } from '#operations-under-test';
import { closeStores, hasRedis, openMemory, openRedis } from '../../../limits/test/support/limiter-stores.js';
import { toPlanTable } from '../../src/contract/plans.js';
import { createCaller, startService } from '../support/test-service.js';

// Files share modules: this one has its own, and leaves none behind.
vi.hoisted(() => vi.resetModules());

// What a store edits to limit the requests of an hour.
vi.mock('@animal-store/definition/plans', async (importOriginal) => {
  const plans = await importOriginal<typeof import('@animal-store/definition/plans')>();
  // A store that has an hour of its own gets this one in its place.
  const [minute, ...longer] = plans.WINDOWS.filter(({ name }) => (name as string) !== 'hour');
  const withoutHour = Object.entries(plans.PLANS).map(([plan, limits]) => [
    plan,
    limits && { ...limits, perHour: undefined },
  ]);
  return {
    ...plans,
    WINDOWS: [minute, { name: 'hour', lengthMs: 3_600_000, field: 'perHour' }, ...longer],
    PLANS: { ...Object.fromEntries(withoutHour), free: { ...plans.PLANS.free, perHour: 100 } },
  };
});

afterAll(async () => {
  await closeStores();
  vi.doUnmock('@animal-store/definition/plans');
  vi.resetModules();
});

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

describe.each([
  { name: 'memory', skipped: false, open: openMemory },
  { name: 'Redis', skipped: !hasRedis, open: openRedis },
])('with a window of an hour, in $name', ({ skipped, open }) => {
  const storeTest = test.skipIf(skipped);

  storeTest(
    'it is in the headers and in getKey, and a request that it denies may be repeated when it ends',
    async () => {
      const { limiter, advance, clock } = await open(WINDOWS);
      const service = await startService({ limiter, now: () => clock.nowMs });
      try {
        const { key, apiKey } = await service.keys.create({ name: 'hourly', plan: 'free' });
        const call = createCaller({ url: service.url, key });
        const own = await service.keys.create({ name: 'own', plan: 'enterprise', perMinute: 5, perDay: 9 });
        expect((await call(list.path, { key: own.key })).headers.get('ratelimit-policy')).toBe(
          '"minute";q=5;w=60, "day";q=9;w=86400',
        );
        for (let sent = 0; sent < 100; sent += 50) {
          for (let n = 0; n < 50; n += 1)
            expect((await call(`${list.path}?limit=1`, { key })).status).toBe(200);
          await advance(MINUTE_MS, apiKey.id);
        }
        const denied = await call(list.path, { key });
        expect(denied.status).toBe(429);
        const seconds = Number(denied.headers.get('retry-after'));
        expect(seconds).toBeGreaterThan(3_400);
        expect(seconds).toBeLessThanOrEqual(HOUR_MS / 1000 - 120);
        expect(denied.headers.get('x-ratelimit-limit')).toBe('100');
        expect(denied.headers.get('ratelimit-policy')).toBe(
          '"minute";q=60;w=60, "hour";q=100;w=3600, "day";q=1000;w=86400',
        );
        expect(denied.headers.get('ratelimit')).toContain(
          `"minute";r=60;t=60, "hour";r=0;t=${seconds}, "day";r=900`,
        );
        expect((await call('/v1/key', { key })).body.limits).toMatchObject([
          { window: 'minute', limit: 60, remaining: 60 },
          { window: 'hour', limit: 100, remaining: 0 },
          { window: 'day', limit: 1_000, remaining: 900 },
        ]);
        await advance(seconds * 1000, apiKey.id);
        expect((await call(list.path, { key })).status).toBe(200);
        expect(limiter.state).not.toBe('degraded');
      } finally {
        await service.close();
      }
    },
  );
});

test('the table of plans shows it, and who has none', () => {
  const [headings = '', , free = '', pro = ''] = toPlanTable().split('\n');
  expect(headings).toBe('| plan | requests per minute | requests per hour | requests per day |');
  expect([free, pro]).toEqual(['| free | 60 | 100 | 1,000 |', '| pro | 300 | no limit | 10,000 |']);
  expect(toPlanTable()).toContain('| enterprise | set per key | no limit | set per key |');
});
