import { randomBytes, randomUUID } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createLimiter } from '@animal-store/limits';
import { Redis } from 'ioredis';
import { WINDOWS } from '../src/plans.js';
import { createAuthenticator } from '../src/platform/keys/authenticator.js';
import { generateKey } from '../src/platform/keys/format.js';
import type { ApiKey, FoundKey } from '../src/platform/keys/store.js';
import { SCOPES } from '../src/scopes.js';
import { startRedis } from '../test/support/redis.js';
import { printTable } from './table.js';

const KEY_COUNT = 100_000;
/** Calls in flight at once */
const CONCURRENCY = 64;
const LIMITS = { perMinute: 300, perDay: 10_000 };
const READY_TIMEOUT_MS = 2_000;

/** The memory that 100,000 keys take after one request each: in this process, and in Redis when there is one. */
export async function measureMemory(): Promise<void> {
  const toMegabytes = (bytes: number) => (bytes / 2 ** 20).toFixed(1);
  const rows = [
    ['keys', toMegabytes(await measureKeys()), ''],
    ['limits in memory', toMegabytes(await measureLimiter()), ''],
  ];
  const redis = await startRedis();
  if (redis !== undefined) {
    const client = new Redis(redis.url);
    const readRedis = async () => Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]);
    const redisBefore = await readRedis();
    const growth = await measureLimiter(redis.url);
    rows.push(['limits in Redis', toMegabytes(growth), toMegabytes((await readRedis()) - redisBefore)]);
    client.disconnect();
    await redis.close();
  }
  const title = `${KEY_COUNT.toLocaleString('en')} keys`;
  printTable({ headings: [title, 'MB of the service', 'MB of Redis'], rows });
}

/** Flat strings, as the database returns them: randomUUID concatenates twenty pieces that take half a kilobyte. */
const createId = () => Buffer.from(randomUUID()).toString('latin1');

async function measureKeys(): Promise<number> {
  const fingerprint = () => String(randomBytes(8).readBigInt64BE());
  const read = (): FoundKey => ({
    ...ROW,
    ...{ id: createId(), scopes: [...ROW.scopes], createdAt: new Date(), fingerprint: fingerprint() },
  });
  const store = {
    findByHashes: async (hashes: readonly Uint8Array[]) => hashes.map(read),
    findChanged: async () => [],
  };
  const authenticator = createAuthenticator({ store, prefix: 'as_test_', now: Date.now });
  const header = () => Buffer.from(`Bearer ${generateKey('as_test_')}`).toString('latin1');
  const authenticate = () => authenticator.authenticate(header());
  const growth = await measureGrowth(authenticate);
  await authenticate();
  return growth;
}

const ROW: ApiKey = {
  id: '',
  name: 'A key of a customer',
  owner: null,
  hint: 'as_test_0000',
  plan: 'pro',
  perMinute: null,
  perDay: null,
  scopes: SCOPES,
  createdAt: new Date(),
  expiresAt: null,
  previousExpiresAt: null,
  revokedAt: null,
  bannedUntil: null,
  banSeconds: null,
};

async function measureLimiter(redisUrl?: string): Promise<number> {
  const redisUrls = redisUrl === undefined ? [] : [redisUrl];
  const limiter = await createLimiter({ windows: WINDOWS, redisUrls, log: { info() {}, warn() {} } });
  await limiter.ready(READY_TIMEOUT_MS);
  const consume = async () => limiter.consume({ kind: 'key', id: createId(), limits: LIMITS }, 1);
  const growth = await measureGrowth(consume);
  const isRight = (limiter.state === 'redis') === (redisUrl !== undefined);
  await limiter.close();
  if (!isRight) throw new Error('The connection to Redis was lost');
  return growth;
}

/** How many bytes this process grows by. The caller has to use what grows once more, or it is collected before. */
async function measureGrowth(use: () => Promise<unknown>): Promise<number> {
  const before = readMemory();
  let count = 0;
  const work = async () => {
    while (count < KEY_COUNT) {
      count += 1;
      await use();
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
  return readMemory() - before;
}

/** Live bytes on the heap and in buffers outside it. */
function readMemory(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
