import { canStartRedis } from '@animal-store/limits/testing';
import { afterEach, expect, test } from 'vitest';
import { admin, closeAll, node, server, subject } from '../support/limiter-nodes.js';

afterEach(closeAll);

/** A minute that has not ended, by any clock */
const LATER = Date.now() + 86_400_000;
const NUMBERS = [
  'text',
  '',
  'nan',
  '-nan',
  'inf',
  '-inf',
  '2.5',
  '-5',
  '1e300',
  '9007199254740993',
  '0x1p-3',
];

/** What others may have left where a subject is counted: as one of its fields, or in place of its hash */
const ODD: readonly (readonly [command: string, ...args: (string | number)[]])[] = [
  ...NUMBERS.map((count) => ['HSET', 'minute', count, 'minuteEnds', LATER] as const),
  ...NUMBERS.map((ends) => ['HSET', 'day', 1, 'dayEnds', ends] as const),
  ['HSET', 'other', 'x'],
  ['SET', 'text'],
  ['RPUSH', 'item'],
  ['SADD', 'member'],
  ['ZADD', 1, 'member'],
];

test.skipIf(!canStartRedis())(
  'what is no count under the key of a subject lets that subject start anew, in whole numbers, and nobody else notices',
  async () => {
    const redis = await server();
    const client = admin(redis);
    const { limiter, logged } = await node([redis.url]);
    const other = { ...subject, id: 'other' };
    await limiter.consume(other, 1);
    const found = async (id: string) => {
      const { isAllowed, windows } = await limiter.consume({ ...subject, id }, 1);
      return [isAllowed, ...windows.map(({ remaining }) => remaining)];
    };
    for (const [n, [command, ...args]] of ODD.entries()) {
      const key = `limits:key:{odd-${n}}`;
      await client.call(command, key, ...args);
      const what = [command, ...args].join(' ');
      expect([what, await found(`odd-${n}`)]).toEqual([what, [true, 59, 999]]);
      expect([what, await found(`odd-${n}`)]).toEqual([what, [true, 58, 998]]);
      expect([what, await client.pttl(key)]).toEqual([what, expect.toSatisfy((ms: number) => ms > 0)]);
    }
    expect(await found('other')).toEqual([true, 58, 998]);
    expect(limiter.state).toBe('redis');
    expect(logged).toEqual([expect.stringContaining('Limits are counted in Redis')]);
  },
);

test.skipIf(!canStartRedis())(
  'a window that goes on keeps its end, whoever began it, beside one that has ended and those of other limiters',
  async () => {
    const redis = await server();
    const client = admin(redis);
    const { limiter } = await node([redis.url]);
    const key = `limits:key:{${subject.id}}`;
    const day = { day: 70, dayEnds: Date.now() + 40_000_000 };
    const week = { week: 5, weekEnds: Date.now() + 400_000_000 };
    await client.hset(key, { minute: 60, minuteEnds: Date.now() - 1, ...day, ...week });
    for (const n of [1, 2, 3]) {
      const { isAllowed, windows } = await limiter.consume(subject, 1);
      expect([isAllowed, ...windows.map(({ remaining }) => remaining)]).toEqual([true, 60 - n, 930 - n]);
    }
    const { minuteEnds, ...stored } = await client.hgetall(key);
    expect(stored).toEqual({
      minute: '3',
      day: '73',
      dayEnds: String(day.dayEnds),
      week: '5',
      weekEnds: String(week.weekEnds),
    });
    expect(Number(minuteEnds)).toBeGreaterThan(Date.now());
    await limiter.consume(subject, 1);
    expect(await client.hget(key, 'minuteEnds')).toBe(minuteEnds);
  },
);
