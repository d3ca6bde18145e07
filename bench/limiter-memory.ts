import { randomUUID } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Redis } from 'ioredis';
import { startRedis } from '../test/support/redis.js';
import { openLimiter } from './open-limiter.js';
import { printTable } from './table.js';

const KEY_COUNT = 100_000;
/** Decisions in flight at once */
const CONCURRENCY = 64;
const LIMITS = { perMinute: 300, perDay: 10_000 };

/** The memory that 100,000 keys take after one request each: in this process, and in Redis when there is one. */
export async function growLimiter(): Promise<void> {
  const toMegabytes = (bytes: number) => (bytes / 2 ** 20).toFixed(1);
  const rows = [['memory', toMegabytes(await measureGrowth()), '']];
  const redis = await startRedis();
  if (redis !== undefined) {
    const client = new Redis(redis.url);
    const readRedis = async () => Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]);
    const redisBefore = await readRedis();
    const growth = await measureGrowth(redis.url);
    rows.push(['Redis', toMegabytes(growth), toMegabytes((await readRedis()) - redisBefore)]);
    client.disconnect();
    await redis.close();
  }
  const title = `${KEY_COUNT.toLocaleString('en')} keys counted in`;
  printTable({ headings: [title, 'MB of the service', 'MB of Redis'], rows });
}

/** Returns how many bytes this process grows by. */
async function measureGrowth(redisUrl?: string): Promise<number> {
  const before = readMemory();
  const limiter = await openLimiter(redisUrl);
  let used = 0;
  const work = async () => {
    while (used < KEY_COUNT) {
      used += 1;
      // A flat string, as the database returns it: randomUUID concatenates twenty pieces that take half a kilobyte.
      await limiter.consume(Buffer.from(randomUUID()).toString('latin1'), LIMITS);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
  const growth = readMemory() - before;
  await limiter.close();
  return growth;
}

/** Live bytes on the heap and in buffers outside it. */
function readMemory(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
