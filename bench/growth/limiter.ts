import { randomUUID } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Redis } from 'ioredis';
import { createLimiter, type Limiter } from '../../src/limits/limiter.js';
import { startRedis } from '../../test/support/redis.js';
import { printTable } from '../table.js';

const SUBJECTS = 100_000;
/** Decisions under way at once */
const CONCURRENCY = 64;
const LIMITS = { perMinute: 300, perDay: 10_000 };

/** What is kept of 100,000 keys that were used once: in this process, and in Redis when there is one. */
export async function growLimiter(): Promise<void> {
  const rows = [['memory', toMegabytes(await fill([])), '']];
  const redis = await startRedis();
  if (redis !== null) {
    const client = new Redis(redis.url);
    const readRedis = async () => Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]);
    const before = await readRedis();
    const ofProcess = await fill([redis.url]);
    rows.push(['Redis', toMegabytes(ofProcess), toMegabytes((await readRedis()) - before)]);
    client.disconnect();
    await redis.close();
  }
  printTable([`${SUBJECTS.toLocaleString('en')} keys counted in`, 'MB of the service', 'MB of Redis'], rows);
}

/** Returns by how many bytes this process has grown. */
async function fill(redisUrls: readonly string[]): Promise<number> {
  const before = readMemory();
  const limiter = createLimiter({ redisUrls, log: { info() {}, warn() {} } });
  await limiter.ready(2_000);
  await takeAll(limiter, SUBJECTS);
  const after = readMemory();
  if (redisUrls.length > 0 && limiter.state !== 'redis') throw new Error('Redis was lost on the way');
  await limiter.close();
  return after - before;
}

const toMegabytes = (bytes: number) => (bytes / 2 ** 20).toFixed(1);

async function takeAll(limiter: Limiter, count: number): Promise<void> {
  let taken = 0;
  const work = async () => {
    while (taken < count) {
      taken += 1;
      await limiter.take({ kind: 'key', id: newId(), limits: LIMITS }, 1);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
}

/** What is alive on the heap and in buffers beside it, in bytes. */
function readMemory(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** As the database gives it: randomUUID's own result is a tree of twenty pieces, which takes half a kilobyte. */
function newId(): string {
  return Buffer.from(randomUUID()).toString('latin1');
}
