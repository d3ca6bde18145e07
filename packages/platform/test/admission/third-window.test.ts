import { createCaller } from '@animal-store/platform/testing';
import { afterAll, describe, expect, test } from 'vitest';
import { list, definition as ownDefinition, resources as ownResources } from '#operations-under-test';
import { closeStores, hasRedis, openMemory, openRedis } from '../../../limits/test/support/limiter-stores.js';
import { toPlanTable } from '../../src/contract/plans.js';
import type { Definition, Limits, Window } from '../../src/definition/definition.js';
import { createOwnKey } from '../../src/own-key/procedures.js';
import { startService } from '../support/test-service.js';

// What a store edits to limit the requests of an hour. A store that has an hour of its own gets this one in its place.
const [minute, ...longer] = ownDefinition.windows.filter(({ name }) => (name as string) !== 'hour');
const withoutHour = Object.entries<Limits | undefined>(ownDefinition.plans).map(([plan, limits]) => [
  plan,
  limits && { ...limits, perHour: undefined },
]);
const definition: Definition = {
  ...ownDefinition,
  windows: [minute as Window, { name: 'hour', lengthMs: 3_600_000, field: 'perHour' }, ...longer],
  plans: { ...Object.fromEntries(withoutHour), free: { ...ownDefinition.plans.free, perHour: 100 } },
};
const resources = [...ownResources.filter(({ name }) => name !== 'key'), createOwnKey(definition)];

afterAll(closeStores);

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
      const { limiter, advance, clock } = await open(definition.windows);
      const service = await startService({ definition, resources, limiter, now: () => clock.nowMs });
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
  const [headings = '', , free = '', pro = ''] = toPlanTable(definition).split('\n');
  expect(headings).toBe('| plan | requests per minute | requests per hour | requests per day |');
  expect([free, pro]).toEqual(['| free | 60 | 100 | 1,000 |', '| pro | 300 | no limit | 10,000 |']);
  expect(toPlanTable(definition)).toContain('| enterprise | set per key | no limit | set per key |');
});
