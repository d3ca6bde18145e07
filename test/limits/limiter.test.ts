import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, describe, expect, test } from 'vitest';
import { addressId } from '../../src/limits/address.js';
import type { Decision } from '../../src/limits/decision.js';
import { limitHeaders } from '../../src/limits/headers.js';
import { createLimiter, type Limiter, mostRemembered, type Subject } from '../../src/limits/limiter.js';
import { type Limits, limitsOf } from '../../src/limits/plans.js';
import { KeyModel } from '../support/limits-model.js';
import { findRedis, until } from '../support/redis.js';

const silent = { info: () => {}, warn: () => {} };
const startMs = Date.UTC(2030, 0, 1);

/** A limiter whose time the test moves, on whatever store. */
interface Bench {
  limiter: Limiter;
  clock: { nowMs: number };
  /** Moves the time of the node and of the store for one key. */
  pass(ms: number, keyId: string): Promise<void>;
}

function memoryBench(): Bench {
  const clock = { nowMs: startMs };
  const limiter = createLimiter({ redisUrls: [], log: silent, clock: () => clock.nowMs });
  const pass = async (ms: number) => {
    clock.nowMs += ms;
  };
  return { limiter, clock, pass };
}

const redis = await findRedis();
const client = redis && new Redis(redis.url);
const prefix = `limits-test-${process.pid}`;
const opened: Limiter[] = [];

/** Redis counts by its own clock: time passes there by setting back what it holds. */
async function redisBench(): Promise<Bench> {
  const clock = { nowMs: startMs };
  const limiter = createLimiter({
    redisUrls: [redis?.url ?? ''],
    log: silent,
    prefix,
    clock: () => clock.nowMs,
  });
  opened.push(limiter);
  await until(() => (limiter.state === 'redis' ? true : null));
  const pass = async (ms: number, keyId: string) => {
    clock.nowMs += ms;
    const age = `for _, field in ipairs({'minuteEnds', 'dayEnds', 'banEnds'}) do
      if redis.call('HEXISTS', KEYS[1], field) == 1 then redis.call('HINCRBY', KEYS[1], field, -ARGV[1]) end
    end`;
    await client?.eval(age, 1, `${prefix}:key:{${keyId}}`, ms);
  };
  return { limiter, clock, pass };
}

afterAll(async () => {
  await Promise.all(opened.map((limiter) => limiter.close()));
  if (client) {
    const keys = await client.keys(`${prefix}:*`);
    if (keys.length > 0) await client.del(keys);
    client.disconnect();
  }
  await redis?.close();
});

let made = 0;
function key(limits: Limits): Subject {
  made += 1;
  return { kind: 'key', id: `00000000-0000-4000-8000-${String(made).padStart(12, '0')}`, limits };
}

async function takeMany({ limiter }: Bench, subject: Subject, count: number): Promise<Decision[]> {
  const decisions: Decision[] = [];
  for (let taken = 0; taken < count; taken += 1) decisions.push(await limiter.take(subject, 1));
  return decisions;
}

function admittedOf(decisions: Decision[]): number {
  return decisions.filter(({ admitted }) => admitted).length;
}

const minute = 60_000;
const day = 86_400_000;

describe.each([
  { name: 'memory', skipped: false, open: async () => memoryBench() },
  { name: 'Redis', skipped: !redis, open: redisBench },
])('limits in $name', ({ skipped, open }) => {
  const promise = test.skipIf(skipped);

  promise('exactly the limit is admitted of 500 requests at once', async () => {
    const { limiter } = await open();
    const subject = key({ perMinute: 60, perDay: 1_000 });
    const decisions = await Promise.all(Array.from({ length: 500 }, () => limiter.take(subject, 1)));
    expect(admittedOf(decisions)).toBe(60);
    const { windows } = await limiter.inspect(subject.id, subject.limits);
    expect(windows.map(({ remaining }) => remaining)).toEqual([0, 940]);
  });

  promise('a batch is admitted whole or refused whole', async () => {
    const { limiter } = await open();
    const subject = key({ perMinute: 50, perDay: null });
    const decisions = [20, 20, 20, 10, 1].map((cost) => limiter.take(subject, cost));
    expect((await Promise.all(decisions)).map(({ admitted }) => admitted)).toEqual([
      true,
      true,
      false,
      true,
      false,
    ]);
  });

  promise('a request refused by one window takes nothing from the other', async () => {
    const bench = await open();
    const subject = key({ perMinute: 10, perDay: 15 });
    await takeMany(bench, subject, 14);
    await bench.pass(minute, subject.id);
    const decisions = await takeMany(bench, subject, 7);
    expect(admittedOf(decisions)).toBe(5);
    const { windows } = await bench.limiter.inspect(subject.id, subject.limits);
    expect(windows.map(({ remaining }) => remaining)).toEqual([5, 0]);
  });

  promise('a batch larger than the limit is refused with headers that make sense', async () => {
    const { limiter } = await open();
    const decision = await limiter.take(key({ perMinute: 5, perDay: 100 }), 20);
    expect(decision).toMatchObject({ admitted: false, code: 'rate_limit_exceeded', retryAfterSeconds: 60 });
    expect(decision.tighter).toMatchObject({ name: 'minute', remaining: 5 });
  });

  promise('whoever waits Retry-After is admitted, also when both windows refuse', async () => {
    const bench = await open();
    const subject = key({ perMinute: 5, perDay: 5 });
    await takeMany(bench, subject, 5);
    await bench.pass(1_500, subject.id);
    const refusal = await bench.limiter.take(subject, 1);
    expect(refusal.tighter.name).toBe('day');
    await bench.pass((refusal.retryAfterSeconds ?? 0) * 1000, subject.id);
    expect((await bench.limiter.take(subject, 1)).admitted).toBe(true);
  });

  promise('a window ends no earlier than it says', async () => {
    const bench = await open();
    const subject = key({ perMinute: 1, perDay: null });
    const { tighter } = await bench.limiter.take(subject, 1);
    expect(tighter.resetAtMs).toBe(startMs + minute);
    await bench.pass(minute - 1_000, subject.id);
    expect((await bench.limiter.take(subject, 1)).admitted).toBe(false);
  });

  promise('a clock that is set back prolongs no window', async () => {
    const bench = await open();
    const subject = key({ perMinute: 1, perDay: 2 });
    await bench.limiter.take(subject, 1);
    await bench.pass(-3 * day, subject.id);
    expect((await bench.limiter.take(subject, 1)).admitted).toBe(true);
    expect(await bench.limiter.take(subject, 1)).toMatchObject({ admitted: false, retryAfterSeconds: 60 });
  });

  promise('other limits hold for the next request and keep what was counted', async () => {
    const bench = await open();
    const subject = key({ perMinute: 3, perDay: 10 });
    await takeMany(bench, subject, 4);
    const larger = { ...subject, limits: { perMinute: 5, perDay: 10 } };
    expect(admittedOf(await takeMany(bench, larger, 3))).toBe(2);
    expect((await bench.limiter.take(subject, 1)).tighter.remaining).toBe(0);
  });

  promise(
    'the refusal that reaches the limit bans, the next answer says so, and it lasts five minutes',
    async () => {
      const bench = await open();
      const subject = key({ perMinute: 10, perDay: 1_000 });
      const codes = (await takeMany(bench, subject, 21)).map(({ code }) => code);
      expect(codes.slice(10)).toEqual([...new Array(10).fill('rate_limit_exceeded'), 'api_key_banned']);
      await bench.pass(299_000, subject.id);
      expect(await bench.limiter.take(subject, 1)).toMatchObject({
        code: 'api_key_banned',
        retryAfterSeconds: 1,
      });
      await bench.pass(1_000, subject.id);
      expect((await bench.limiter.take(subject, 1)).admitted).toBe(true);
    },
  );

  promise('a refused batch counts towards the ban with all of its calls', async () => {
    const { limiter } = await open();
    const subject = key({ perMinute: 10, perDay: null });
    expect((await limiter.take(subject, 20)).code).toBe('rate_limit_exceeded');
    expect((await limiter.take(subject, 1)).code).toBe('api_key_banned');
  });

  promise('each further ban within a day lasts twice as long, up to a day', async () => {
    const bench = await open();
    const subject = key({ perMinute: 1, perDay: null });
    const lengths: number[] = [];
    for (let round = 0; round < 11; round += 1) {
      await bench.limiter.take(subject, 2);
      const { retryAfterSeconds } = await bench.limiter.take(subject, 1);
      lengths.push(retryAfterSeconds ?? 0);
      await bench.pass((retryAfterSeconds ?? 0) * 1000, subject.id);
    }
    expect(lengths).toEqual([300, 600, 1200, 2400, 4800, 9600, 19200, 38400, 76800, 86400, 86400]);
    await bench.pass(day, subject.id);
    await bench.limiter.take(subject, 2);
    expect((await bench.limiter.take(subject, 1)).retryAfterSeconds).toBe(300);
  });

  promise('unban lifts the ban, the doubling and the refusals counted', async () => {
    const bench = await open();
    const subject = key({ perMinute: 5, perDay: null });
    await takeMany(bench, subject, 11);
    expect(await bench.limiter.inspect(subject.id, subject.limits)).toMatchObject({ nextBanSeconds: 600 });
    await bench.limiter.unban(subject.id);
    expect(await bench.limiter.inspect(subject.id, subject.limits)).toMatchObject({
      ban: null,
      nextBanSeconds: 300,
    });
    const codes = (await takeMany(bench, subject, 6)).map(({ code }) => code);
    expect(codes).toEqual([...new Array(5).fill('rate_limit_exceeded'), 'api_key_banned']);
  });

  promise('an address is limited and never banned', async () => {
    const bench = await open();
    const subject: Subject = {
      kind: 'address',
      id: `${process.pid}`,
      limits: { perMinute: 2, perDay: null },
    };
    const decisions = await takeMany(bench, subject, 20);
    expect(admittedOf(decisions)).toBe(2);
    expect(decisions.some(({ code }) => code === 'api_key_banned')).toBe(false);
    expect(decisions[0]?.windows).toHaveLength(1);
  });

  promise(
    'Retry-After, Reset and t agree to the second and never name a moment before the window ends',
    async () => {
      const bench = await open();
      const subject = key({ perMinute: 1, perDay: 100 });
      await bench.limiter.take(subject, 1);
      for (const ms of [1, 999, 500, 30_250, 20_000]) {
        await bench.pass(ms, subject.id);
        const decision = await bench.limiter.take(subject, 1);
        const headers = limitHeaders(decision);
        const retryMs = bench.clock.nowMs + Number(decision.retryAfterSeconds) * 1000;
        expect(Math.abs(Number(headers['X-RateLimit-Reset']) * 1000 - retryMs)).toBeLessThan(1_000);
        expect(headers.RateLimit).toContain(`"minute";r=0;t=${decision.retryAfterSeconds}, "day";r=99`);
        await bench.limiter.unban(subject.id);
      }
    },
  );

  promise('any interleaving of calls, batches and time answers as the contract does', async () => {
    const bench = await open();
    const limits = fc.record({
      perMinute: fc.integer({ min: 1, max: 8 }),
      perDay: fc.integer({ min: 1, max: 20 }),
    });
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.record({ take: fc.integer({ min: 1, max: 6 }) }) },
      {
        weight: 2,
        arbitrary: fc.record({ pass: fc.constantFrom(1, 2, 30, 59, 60, 61, 300, 3_600, 86_400) }),
      },
      { weight: 1, arbitrary: fc.record({ limits }) },
      { weight: 1, arbitrary: fc.constant({ unban: true }) },
    );
    const property = fc.asyncProperty(
      limits,
      fc.array(step, { maxLength: 60, size: 'max' }),
      async (first, steps) => {
        const subject = key(first);
        const model = new KeyModel();
        for (const action of steps) {
          if ('take' in action) {
            const decision = await bench.limiter.take(subject, action.take);
            expect(seen(decision)).toEqual(model.take(subject.limits, action.take));
          } else if ('pass' in action) {
            await bench.pass(action.pass * 1000, subject.id);
            model.nowSeconds += action.pass;
          } else if ('limits' in action) {
            subject.limits = action.limits;
          } else {
            await bench.limiter.unban(subject.id);
            model.unban();
          }
        }
      },
    );
    await fc.assert(property, { numRuns: 200 });
  });
});

function seen({ code, windows, retryAfterSeconds }: Decision) {
  return { code, remaining: windows.map(({ remaining }) => remaining), retryAfterSeconds };
}

test('200,000 addresses are held in the memory of 50,000, the ones seen last', async () => {
  const { limiter } = memoryBench();
  const limits: Limits = { perMinute: 1, perDay: null };
  const take = async (index: number) => limiter.take({ kind: 'address', id: `10.${index}`, limits }, 1);
  const most = mostRemembered.address;
  for (let index = 0; index < most; index += 1) await take(index);
  const fullBytes = heapBytes();
  for (let index = most; index < 200_000; index += 1) await take(index);
  // Three times as many again would be over 50 MB.
  expect(heapBytes() - fullBytes).toBeLessThan(5e6);
  expect((await take(200_000 - most)).admitted).toBe(false);
  expect((await take(0)).admitted).toBe(true);
});

/** What the heap holds once it is cleared of garbage, which only a flag of V8 lets a test ask for. */
function heapBytes(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}

test('a client address is counted whole in IPv4, by /64 in IPv6, and mapped IPv6 as IPv4', () => {
  const ids = {
    '203.0.113.7': '203.0.113.7',
    '::ffff:203.0.113.7': '203.0.113.7',
    '::FFFF:cb00:7107': '203.0.113.7',
    '2001:db8:1:2:3:4:5:6': '2001:db8:1:2::/64',
    '2001:0DB8:1:2::9': '2001:db8:1:2::/64',
    '2001:db8::1': '2001:db8:0:0::/64',
    '::1': '0:0:0:0::/64',
    'fe80::1%eth0': 'fe80:0:0:0::/64',
    'not an address': 'unknown',
    '': 'unknown',
  };
  expect(Object.keys(ids).map(addressId)).toEqual(Object.values(ids));
  expect(addressId(undefined)).toBe('unknown');
});

test('every plan has the limits of the contract, and an enterprise key its own', () => {
  const none = { perMinute: null, perDay: null };
  expect(limitsOf({ plan: 'free', ...none })).toEqual({ perMinute: 60, perDay: 1_000 });
  expect(limitsOf({ plan: 'pro', ...none })).toEqual({ perMinute: 300, perDay: 10_000 });
  expect(limitsOf({ plan: 'business', ...none })).toEqual({ perMinute: 1_000, perDay: 100_000 });
  expect(limitsOf({ plan: 'enterprise', perMinute: 7, perDay: 9 })).toEqual({ perMinute: 7, perDay: 9 });
});

test('headers of an admitted request name the tighter window and both windows of the draft', async () => {
  const { limiter } = memoryBench();
  const decision = await limiter.take(key({ perMinute: 60, perDay: 1_000 }), 1);
  expect(limitHeaders(decision)).toEqual({
    'X-RateLimit-Limit': '60',
    'X-RateLimit-Remaining': '59',
    'X-RateLimit-Reset': String(startMs / 1000 + 60),
    'RateLimit-Policy': '"minute";q=60;w=60, "day";q=1000;w=86400',
    RateLimit: '"minute";r=59;t=60, "day";r=999;t=86400',
  });
});
