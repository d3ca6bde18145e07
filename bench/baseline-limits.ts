import { Redis } from 'ioredis';
import { ApiError } from './baseline-input.js';

/*
 * The limits of bench/baseline.ts and bench/hono.ts: one Lua call per request, or the memory of the process without
 * Redis.
 */

export interface Limits {
  readonly perMinute: number;
  readonly perDay: number;
}
export type Headers = Record<string, string>;

export const ANONYMOUS: Limits = { perMinute: 1e9, perDay: 1e9 };

type Consume = (...args: ConsumeArguments) => Promise<number[]>;
type ConsumeArguments = [
  minuteKey: string,
  dayKey: string,
  banKey: string,
  perMinute: number,
  perDay: number,
];

/** Returns whether the request is admitted, the count and the remaining milliseconds of each window, and of a ban. */
const CONSUME_SCRIPT = `
local ban = redis.call('PTTL', KEYS[3])
local counts = redis.call('MGET', KEYS[1], KEYS[2])
local minute, day = tonumber(counts[1] or 0), tonumber(counts[2] or 0)
local admitted = ban <= 0 and minute < tonumber(ARGV[1]) and day < tonumber(ARGV[2])
if admitted then
  minute, day = redis.call('INCR', KEYS[1]), redis.call('INCR', KEYS[2])
  if minute == 1 then redis.call('PEXPIRE', KEYS[1], 60000) end
  if day == 1 then redis.call('PEXPIRE', KEYS[2], 86400000) end
end
return { admitted and 1 or 0, minute, redis.call('PTTL', KEYS[1]), day, redis.call('PTTL', KEYS[2]), ban }`;

const consume = process.env.REDIS_URL ? consumeInRedis(process.env.REDIS_URL) : consumeInMemory();

/** Counts the request and sets the headers of its limits. Throws when it is over one of them, or banned. */
export async function countRequest(id: string | undefined, limits: Limits, headers: Headers): Promise<void> {
  const { perMinute, perDay } = limits;
  const prefix = `baseline:{${id}}`;
  const result = await consume(`${prefix}:minute`, `${prefix}:day`, `${prefix}:ban`, perMinute, perDay);
  const [admitted = 0, minuteCount = 0, minuteMs = 0, dayCount = 0, dayMs = 0, banMs = 0] = result;
  const minuteLeft = Math.max(0, perMinute - minuteCount);
  const dayLeft = Math.max(0, perDay - dayCount);
  const isMinute = minuteLeft <= dayLeft;
  const minuteSeconds = Math.ceil(minuteMs / 1000);
  const daySeconds = Math.ceil(dayMs / 1000);
  headers['X-RateLimit-Limit'] = String(isMinute ? perMinute : perDay);
  headers['X-RateLimit-Remaining'] = String(isMinute ? minuteLeft : dayLeft);
  headers['X-RateLimit-Reset'] = String(Math.ceil((Date.now() + (isMinute ? minuteMs : dayMs)) / 1000));
  headers['RateLimit-Policy'] = `"minute";q=${perMinute};w=60, "day";q=${perDay};w=86400`;
  headers.RateLimit = `"minute";r=${minuteLeft};t=${minuteSeconds}, "day";r=${dayLeft};t=${daySeconds}`;
  if (admitted === 1) return;
  const seconds = Math.max(1, Math.ceil(banMs / 1000), isMinute ? minuteSeconds : daySeconds);
  headers['Retry-After'] = String(seconds);
  const code = banMs > 0 ? 'api_key_banned' : 'rate_limit_exceeded';
  throw new ApiError(429, code, `Try again in ${seconds} s.`);
}

/** Memory decides while Redis does not respond in time. */
function consumeInRedis(url: string): Consume {
  const redis = new Redis(url, {
    enableAutoPipelining: true,
    enableOfflineQueue: false,
    // Long, because at 512 connections a machine that stalls would otherwise end the bench with a wrong response.
    commandTimeout: 10_000,
  });
  redis.on('error', () => {});
  redis.defineCommand('consume', { lua: CONSUME_SCRIPT, numberOfKeys: 3 });
  const runScript = (redis as unknown as { consume: Consume }).consume.bind(redis);
  const inMemory = consumeInMemory();
  return (...args) => runScript(...args).catch(() => inMemory(...args));
}

function consumeInMemory(): Consume {
  const windows = new Map<string, { count: number; endsAt: number }>();
  const currentWindow = (key: string, lengthMs: number) => {
    const window = windows.get(key);
    if (window !== undefined && window.endsAt > Date.now()) return window;
    const fresh = { count: 0, endsAt: Date.now() + lengthMs };
    windows.set(key, fresh);
    return fresh;
  };
  return async (minuteKey, dayKey, _banKey, perMinute, perDay) => {
    const minute = currentWindow(minuteKey, 60_000);
    const day = currentWindow(dayKey, 86_400_000);
    const admitted = minute.count < perMinute && day.count < perDay;
    if (admitted) {
      minute.count += 1;
      day.count += 1;
    }
    const now = Date.now();
    return [Number(admitted), minute.count, minute.endsAt - now, day.count, day.endsAt - now, 0];
  };
}
