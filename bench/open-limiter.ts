import { createLimiter } from '../src/limits/limiter.js';

const READY_TIMEOUT_MS = 2_000;

/** The limiter of the service, without the service: in the Redis at the URL, or in memory without one. */
export async function openLimiter(redisUrl?: string) {
  const redisUrls = redisUrl === undefined ? [] : [redisUrl];
  const limiter = await createLimiter({ redisUrls, log: { info() {}, warn() {} } });
  await limiter.ready(READY_TIMEOUT_MS);
  return {
    /** Decides on one request of a key. */
    consume: (id: string, limits: { readonly perMinute: number; readonly perDay: number }) =>
      limiter.consume({ kind: 'key', id, limits }, 1),
    async close() {
      const isRight = (limiter.state === 'redis') === (redisUrl !== undefined);
      await limiter.close();
      if (!isRight) throw new Error('The connection to Redis was lost');
    },
  };
}
