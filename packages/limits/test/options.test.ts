import { randomUUID } from 'node:crypto';
import { findRedis, freePort } from '@animal-store/limits/testing';
import { afterAll, afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { createLimiter, type LimiterOptions, type Subject } from '../src/index.js';
import { admin, closeAll, reaches } from './support/limiter-nodes.js';
import { silent } from './support/limiter-stores.js';
import { WINDOWS } from './support/windows.js';

afterEach(closeAll);

const [MINUTE] = WINDOWS;
const ENDS = { name: 'minuteEnds', lengthMs: 120_000, field: 'perTwoMinutes' };
const FUNCTION = [null, 'x', {}];
/** What a program without types may pass for each option */
const MISTAKEN: Readonly<Record<string, readonly unknown[]>> = {
  windows: [
    ...[undefined, null, [], 'minute', {}, [null]],
    ...[[MINUTE, ENDS], [{ ...MINUTE, name: undefined }], [{ ...MINUTE, field: undefined }]],
    ...['60000', Number.NaN, Infinity, 1e14].map((lengthMs) => [{ ...MINUTE, lengthMs }]),
  ],
  redisUrls: [
    ...[undefined, null, 'redis://127.0.0.1:6379', [undefined], [6379], ['']],
    ...[['127.0.0.1:6379'], ['http://127.0.0.1:6379'], ['redis+sentinel://a/b', 'redis://a']],
  ],
  log: [undefined, null, {}, { info: () => {} }, () => {}],
  prefix: [null, 7, {}],
  channelName: [null, 7, Symbol('a')],
  commandTimeoutMs: [null, 0, -1, Number.NaN, '160'],
  readRedisUrls: FUNCTION,
  observeCommand: FUNCTION,
  clock: FUNCTION,
  now: FUNCTION,
};

test.each(
  Object.entries(MISTAKEN).flatMap(([option, values]) => values.map((value) => [option, value] as const)),
)('a limiter whose %s is %o is a TypeError that names it', async (option, value) => {
  const options = { windows: WINDOWS, redisUrls: ['redis://127.0.0.1:1'], log: silent, [option]: value };
  const created = createLimiter(options as unknown as LimiterOptions);
  created.then((limiter) => limiter.close()).catch(() => {});
  const error = await created.catch((each) => each);
  expect(error).toBeInstanceOf(TypeError);
  // Those of windows name what is wrong of them.
  expect(error.message).toMatch(option === 'windows' ? /window|'name'/ : option);
});

test.each([undefined, null, -1, Number.NaN, '5000'])(
  'to wait %o for Redis is a RangeError, because it might be for ever',
  async (withinMs) => {
    const limiter = await createLimiter({ windows: WINDOWS, redisUrls: [], log: silent });
    await expect(limiter.ready(withinMs as number)).rejects.toThrow(RangeError);
    await expect(limiter.ready(0)).resolves.toBe(undefined);
  },
);

test('while the URLs cannot be read again, those that were read last stay, and the log says why', async () => {
  const url = `redis://127.0.0.1:${await freePort()}`;
  const failures = [
    () => {
      throw new Error('no such file');
    },
    () => [],
  ];
  const reasons: unknown[] = [];
  const limiter = await createLimiter({
    windows: WINDOWS,
    redisUrls: [url],
    readRedisUrls: () => (failures.shift() ?? (() => [url]))(),
    log: { info: () => {}, warn: (details) => reasons.push((details as { reason: unknown }).reason) },
  });
  onTestFinished(() => limiter.close());
  const expected = ['no such file', 'there is none'].map((reason) =>
    expect.stringContaining(`cannot be read again: ${reason}`),
  );
  await expect.poll(() => reasons).toEqual(expect.arrayContaining(expected));
  expect(limiter.state).toBe('degraded');
});

const redis = await findRedis();
afterAll(() => redis?.close());

describe.skipIf(!redis)('on one Redis', () => {
  const url = redis?.url ?? '';
  const open = async (prefix: string, options: Partial<LimiterOptions> = {}) => {
    const redis = { redisUrls: [url], commandTimeoutMs: 20_000, prefix };
    const limiter = await createLimiter({ windows: WINDOWS, log: silent, ...redis, ...options });
    onTestFinished(() => limiter.close());
    await reaches(limiter, 'redis');
    return limiter;
  };
  const subject: Subject = { kind: 'key', id: 'a', limits: { perMinute: 9 } };

  test('limiters with one prefix share their counts, and each with its own does not', async () => {
    const shared = `limits-test-{}${randomUUID()}`;
    const remaining: number[] = [];
    for (const prefix of [shared, shared, `${shared}-own`])
      remaining.push((await (await open(prefix)).consume(subject, 2)).binding.remaining);
    expect(remaining).toEqual([7, 5, 7]);
  });

  test('a clock may have fractions of a millisecond, also when Redis has lost the counts', async () => {
    const prefix = `limits-test-${randomUUID()}`;
    const limiter = await open(prefix, { clock: () => Math.floor(performance.now()) + Math.random() });
    const remaining: number[] = [];
    for (let n = 0; n < 3; n += 1) {
      remaining.push((await limiter.consume(subject, 2)).binding.remaining);
      expect(limiter.state).toBe('redis');
      await admin({ url }).del(`${prefix}:key:{a}`);
    }
    expect(remaining).toEqual([7, 5, 3]);
  });
});
