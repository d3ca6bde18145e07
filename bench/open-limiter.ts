import { createLimiter } from '../src/limits/limiter.js';

const READY_TIMEOUT_MS = 2_000;

interface BenchLimits {
  readonly perMinute: number;
  readonly perDay: number;
}

/** The limiter of the service, without the service: the only place in the bench that knows its interface. */
export interface BenchLimiter {
  /** Decides on one request of a key. */
  consume(keyId: string, limits: BenchLimits): unknown;
  /** Whether Redis decides, rather than this process while it waits for Redis */
  isInRedis(): boolean;
  close(): Promise<void>;
}

/** Counts in the Redis at the URL, or in memory without one. */
export async function openLimiter(redisUrl?: string, prefix?: string): Promise<BenchLimiter> {
  const limiter = await createLimiter({
    redisUrls: redisUrl === undefined ? [] : [redisUrl],
    log: { info() {}, warn() {} },
    ...(prefix === undefined ? {} : { prefix }),
  });
  await limiter.ready(READY_TIMEOUT_MS);
  const isInRedis = () => limiter.state === 'redis';
  if (redisUrl !== undefined && !isInRedis()) throw new Error('The limiter did not connect to Redis');
  return {
    consume: (id, limits) => limiter.consume({ kind: 'key', id, limits }, 1),
    isInRedis,
    close: () => limiter.close(),
  };
}
