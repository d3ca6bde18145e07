import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { canStartRedis, freePort } from '@animal-store/limits/testing';
import fc from 'fast-check';
import { RLWrapperTimeouts } from 'rate-limiter-flexible';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import type { CircuitBreaker } from '../src/circuit-breaker.js';
import {
  createLimiter,
  type Limits,
  MAX_SUBJECTS,
  type RateLimitResult,
  type Subject,
} from '../src/index.js';
import { MemoryStore } from '../src/memory-store.js';
import { RedisStore } from '../src/redis/store.js';
import { admin, closeAll, countAllowed, node, server } from './support/limiter-nodes.js';
import {
  anyLimits,
  closeStores,
  createKey,
  expectContract,
  type Fixture,
  hasRedis,
  listStates,
  openMemory,
  openRedis,
  pick,
  remaining,
  START_MS,
  silent,
} from './support/limiter-stores.js';
import { MODEL_RUNS } from './support/model-runs.js';
import { WINDOWS } from './support/windows.js';

// A store that failed would have been replaced by memory, which keeps the same promises.
afterEach(() => expect(listStates()).not.toContain('degraded'));

afterAll(closeStores);

async function consumeMany(
  { limiter }: Fixture,
  subject: Subject,
  count: number,
): Promise<RateLimitResult[]> {
  const results: RateLimitResult[] = [];
  for (let n = 0; n < count; n += 1) results.push(await limiter.consume(subject, 1));
  return results;
}

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const [MINUTE, DAY] = WINDOWS;
const WITH_HOUR = [MINUTE, { name: 'hour', lengthMs: 3_600_000, field: 'perHour' }, DAY] as const;
/** Of a store that is made without a limiter */
const NAMED = { names: ['minute'], channelName: 'limits.batch' };

describe.each([
  { name: 'memory', skipped: false, open: openMemory },
  { name: 'Redis', skipped: !hasRedis, open: openRedis },
])('limits in $name', ({ skipped, open }) => {
  const storeTest = test.skipIf(skipped);

  storeTest('of 500 simultaneous requests, exactly the limit is allowed', async () => {
    const { limiter } = await open();
    const subject = createKey({ perMinute: 60, perDay: 1_000 });
    const results = await Promise.all(Array.from({ length: 500 }, () => limiter.consume(subject, 1)));
    expect(countAllowed(results)).toBe(60);
    expect(remaining(await limiter.read(subject, 1))).toEqual([0, 940]);
  });

  storeTest('a batch is allowed whole or denied whole', async () => {
    const { limiter } = await open();
    const subject = createKey({ perMinute: 50, perDay: undefined });
    const results = [20, 20, 20, 10, 1].map((cost) => limiter.consume(subject, cost));
    expect((await Promise.all(results)).map(({ isAllowed }) => isAllowed)).toEqual([
      true,
      true,
      false,
      true,
      false,
    ]);
  });

  storeTest('a request that one window denies does not count in the other', async () => {
    const fixture = await open();
    const subject = createKey({ perMinute: 10, perDay: 15 });
    await consumeMany(fixture, subject, 14);
    await fixture.advance(MINUTE_MS, subject.id);
    const results = await consumeMany(fixture, subject, 7);
    expect(countAllowed(results)).toBe(5);
    expect(remaining(await fixture.limiter.read(subject, 1))).toEqual([5, 0]);
  });

  storeTest('a batch larger than the limit is denied, with a meaningful status', async () => {
    const { limiter } = await open();
    const result = await limiter.consume(createKey({ perMinute: 5, perDay: 100 }), 20);
    expect(result).toMatchObject({ isAllowed: false, retryAfterSeconds: 60 });
    expect(result.binding).toMatchObject({ name: 'minute', remaining: 5 });
  });

  storeTest('a caller that waits for Retry-After is allowed, even when both windows denied it', async () => {
    const fixture = await open();
    const subject = createKey({ perMinute: 5, perDay: 5 });
    await consumeMany(fixture, subject, 5);
    await fixture.advance(1_500, subject.id);
    const denial = await fixture.limiter.consume(subject, 1);
    expect(denial.binding.name).toBe('day');
    await fixture.advance((denial.retryAfterSeconds ?? 0) * 1000, subject.id);
    expect((await fixture.limiter.consume(subject, 1)).isAllowed).toBe(true);
  });

  storeTest('a window does not end before the time it announced', async () => {
    const fixture = await open();
    const subject = createKey({ perMinute: 1, perDay: undefined });
    const { binding } = await fixture.limiter.consume(subject, 1);
    expect(binding.resetAtMs).toBe(START_MS + MINUTE_MS);
    await fixture.advance(MINUTE_MS - 1_000, subject.id);
    expect((await fixture.limiter.consume(subject, 1)).isAllowed).toBe(false);
  });

  storeTest.each([-3 * DAY_MS, -5_000, 5_000, 3 * DAY_MS])(
    'clocks that are set by %d ms allow no request more, and prolong a window to its length at most',
    async (ms) => {
      const fixture = await open();
      const subject = createKey({ perMinute: 1, perDay: 2 });
      await fixture.limiter.consume(subject, 1);
      await fixture.setClocks(ms, subject.id);
      await fixture.advance(1_500, subject.id);
      const denial = await fixture.limiter.consume(subject, 1);
      expect([denial.isAllowed, remaining(denial)]).toEqual([false, [0, 1]]);
      await fixture.advance(MINUTE_MS, subject.id);
      expect((await fixture.limiter.consume(subject, 1)).isAllowed).toBe(true);
    },
  );

  storeTest('changed limits apply to the next request, and keep the counts', async () => {
    const fixture = await open();
    const subject = createKey({ perMinute: 3, perDay: 10 });
    await consumeMany(fixture, subject, 4);
    const larger = { ...subject, limits: { perMinute: 5, perDay: 10 } };
    expect(countAllowed(await consumeMany(fixture, larger, 3))).toBe(2);
    expect((await fixture.limiter.consume(subject, 1)).binding.remaining).toBe(0);
  });

  storeTest('an address is limited by the minute only', async () => {
    const fixture = await open();
    const limits = { perMinute: 2, perDay: undefined };
    const results = await consumeMany(fixture, { kind: 'address', id: `${process.pid}`, limits }, 20);
    expect(countAllowed(results)).toBe(2);
    expect(results[0]?.windows).toHaveLength(1);
  });

  storeTest('a window starts with the first request, not when a caller asks what is left', async () => {
    const fixture = await open();
    const subject = createKey({ perMinute: 2, perDay: 9 });
    await fixture.limiter.read(subject, 1);
    await fixture.advance(30_000, subject.id);
    const { windows } = await fixture.limiter.consume(subject, 1);
    expect(windows.map(({ resetSeconds }) => resetSeconds)).toEqual([60, 86_400]);
  });

  storeTest('Retry-After and the reset of a window agree, and neither precedes its end', async () => {
    const fixture = await open();
    const subject = createKey({ perMinute: 1, perDay: 100 });
    await fixture.limiter.consume(subject, 1);
    for (const ms of [1, 999, 500, 30_250, 20_000]) {
      await fixture.advance(ms, subject.id);
      const { binding, retryAfterSeconds = 0 } = await fixture.limiter.consume(subject, 1);
      const waitedMs = binding.resetAtMs - fixture.clock.nowMs;
      expect([binding.resetSeconds, Math.ceil(waitedMs / 1000)]).toEqual([
        retryAfterSeconds,
        retryAfterSeconds,
      ]);
    }
  });

  storeTest.each([['minute and day', WINDOWS] as const, ['minute, hour and day', WITH_HOUR] as const])(
    'any interleaving of calls, batches, changed limits, time and lost counters gives what is promised of %s, also for those without a limit in the longer ones',
    async (_, windows) => {
      await expectContract(await open(windows));
    },
  );
});

test.skipIf(!hasRedis)(
  'in Redis, requests that arrive together get the results that they would get in turn',
  async () => {
    const { limiter } = await openRedis();
    const { limiter: memory } = await openMemory();
    const request = fc.record({
      key: fc.nat(2),
      limits: anyLimits(12, 0),
      cost: fc.integer({ min: 1, max: 4 }),
    });
    const property = fc.asyncProperty(fc.array(request, { maxLength: 20, size: 'max' }), async (requests) => {
      const keys = [1, 2, 3].map(() => createKey({ perMinute: 0, perDay: 0 }));
      const calls = requests.map(({ key, ...call }) => ({
        ...call,
        of: { ...keys[key], limits: call.limits } as Subject,
      }));
      const expected: RateLimitResult[] = [];
      for (const { of, cost } of calls) expected.push(await memory.consume(of, cost));
      const results = await Promise.all(calls.map(({ of, cost }) => limiter.consume(of, cost)));
      expect(results.map(pick)).toEqual(expected.map(pick));
    });
    await fc.assert(property, MODEL_RUNS);
  },
);

test('200,000 addresses take the memory of 50,000: those seen last are remembered', async () => {
  const { limiter } = await openMemory();
  const limits: Limits = { perMinute: 1, perDay: undefined };
  const consume = async (index: number) => limiter.consume({ kind: 'address', id: `10.${index}`, limits }, 1);
  const max = MAX_SUBJECTS.address;
  for (let index = 0; index < max; index += 1) await consume(index);
  const fullBytes = heapBytes();
  for (let index = max; index < 200_000; index += 1) await consume(index);
  // Another 150,000 subjects would take over 50 MB.
  expect(heapBytes() - fullBytes).toBeLessThan(5e6);
  expect((await consume(200_000 - max)).isAllowed).toBe(false);
  expect((await consume(0)).isAllowed).toBe(true);
});

/** The heap's size after a garbage collection, which only a V8 flag can force. */
function heapBytes(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}

test('an error inside the Redis store opens the circuit breaker, so that the insurance limiter cannot hide it', async () => {
  const opened: unknown[] = [];
  const breaker = { run: async () => '[]', open: (error: unknown) => opened.push(error) };
  const store = new RedisStore({
    connection: { consumeLimits: async () => '', isCluster: false },
    breaker: breaker as unknown as CircuitBreaker,
    keyPrefix: 'limits:key',
    ...NAMED,
    insuranceLimiter: new MemoryStore({ maxSubjects: 1, clock: Date.now, now: Date.now }),
    now: Date.now,
  });
  const windows = [{ name: 'minute', lengthMs: MINUTE_MS, limit: 1 }] as const;
  expect((await store.consume('a', 1, { windows, counts: true })).isAllowed).toBe(true);
  expect(opened).toEqual([expect.any(TypeError)]);
});

test('of a window that restarts, Redis is told what this node has counted itself, and no count of a reply', async () => {
  const told: [cost: number, known: number][] = [];
  const breaker = { run: (_key: string, command: () => unknown) => command(), open: () => {} };
  const store = new RedisStore({
    connection: {
      async consumeLimits(_keys, questions) {
        const [[cost, , [, , , known]]] = JSON.parse(questions);
        told.push([cost, known]);
        if (told.length < 3) throw new Error('Connection is closed.');
        return JSON.stringify([[1, [cost + known, MINUTE_MS]]]);
      },
      isCluster: false,
    },
    breaker: breaker as unknown as CircuitBreaker,
    keyPrefix: 'limits:denied',
    ...NAMED,
    insuranceLimiter: new MemoryStore({ maxSubjects: 1, clock: () => START_MS, now: () => START_MS }),
    now: () => START_MS,
  });
  const windows = [{ name: 'minute', lengthMs: MINUTE_MS, limit: 60 }] as const;
  for (const cost of [7, 2, 1, 1]) await store.consume('a', cost, { windows, counts: true, restarts: true });
  expect(told).toEqual([
    [7, 0],
    [2, 7],
    [1, 9],
    [1, 0],
  ]);
});

test('the stores are limiters of rate-limiter-flexible, whose wrappers take them like its own', async () => {
  const never = new Promise<never>(() => {});
  const breaker = { run: () => never, open: () => {} };
  const insuranceLimiter = new MemoryStore({ maxSubjects: 1, clock: () => START_MS, now: () => START_MS });
  const limiter = new RedisStore({
    connection: { consumeLimits: () => never, isCluster: false },
    breaker: breaker as unknown as CircuitBreaker,
    keyPrefix: 'limits:key',
    ...NAMED,
    insuranceLimiter,
    now: () => START_MS,
  });
  const wrapped = new RLWrapperTimeouts({ limiter, timeoutMs: 1, insuranceLimiter });
  const windows = [{ name: 'minute', lengthMs: MINUTE_MS, limit: 3 }] as const;
  const consume = () => wrapped.consume('a', 2, { windows, counts: true });
  expect(await consume()).toMatchObject({ isAllowed: true, consumedPoints: 2, remainingPoints: 1 });
  expect(await consume()).toMatchObject({ isAllowed: false, consumedPoints: 2, msBeforeNext: MINUTE_MS });
});

test.skipIf(!canStartRedis())(
  'a limiter that is closed says nothing of the connection that ends with it',
  async () => {
    const redis = await server();
    const client = admin(redis);
    const { limiter, logged } = await node([redis.url]);
    await limiter.close();
    const countClients = async () =>
      String(await client.client('LIST'))
        .trim()
        .split('\n').length;
    await expect.poll(countClients).toBe(1);
    expect(logged).toEqual([expect.stringContaining('Limits are counted in Redis')]);
    await closeAll();
  },
);

test.each([
  [[{ name: "a'b", lengthMs: 1, field: 'a' }], /letters/],
  [[MINUTE, MINUTE], /must differ/],
  [[DAY, MINUTE], /the shortest first/],
  [[{ ...MINUTE, lengthMs: 0.5 }], /whole milliseconds/],
] as const)('windows that cannot be counted in are an error: %j', async (windows, message) => {
  await expect(createLimiter({ windows, redisUrls: [], log: silent })).rejects.toThrow(message);
});

test('while Redis is unavailable, a request is decided without waiting, whether it is allowed or denied', async () => {
  const redisUrls = [`redis://127.0.0.1:${await freePort()}`];
  const limiter = await createLimiter({ windows: WINDOWS, redisUrls, log: silent });
  const subject: Subject = { kind: 'key', id: 'nobody', limits: { perMinute: 2, perDay: 9 } };
  expect(limiter.state).toBe('degraded');
  const results = [limiter.read(subject, 1), ...[1, 1, 1].map((cost) => limiter.consume(subject, cost))];
  // A promise has no isAllowed.
  expect(results).toMatchObject([true, true, true, false].map((isAllowed) => ({ isAllowed })));
  await limiter.close();
});
