import { Redis } from 'ioredis';

/** The limits of bench/baseline.ts: one Lua call per request, or the memory of the process without Redis. */
export type Consume = (...args: ConsumeArguments) => Promise<number[]>;
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

/** Memory decides while Redis does not respond in time. */
export function consumeInRedis(url: string): Consume {
  const redis = new Redis(url, {
    enableAutoPipelining: true,
    enableOfflineQueue: false,
    commandTimeout: 150,
  });
  redis.on('error', () => {});
  redis.defineCommand('consume', { lua: CONSUME_SCRIPT, numberOfKeys: 3 });
  const runScript = (redis as unknown as { consume: Consume }).consume.bind(redis);
  const inMemory = consumeInMemory();
  return (...args) => runScript(...args).catch(() => inMemory(...args));
}

export function consumeInMemory(): Consume {
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
