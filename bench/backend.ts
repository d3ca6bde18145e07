import { Redis } from 'ioredis';
import { startRedis } from '../test/support/redis.js';
import { type Keys, PET_COUNT, STATUSES } from './cases.js';
import { runCommand } from './checkout.js';
import { type CpuTimes, readCpuTime } from './cpu-time.js';
import { type BenchPostgres, withClient } from './postgres.js';

const UNLIMITED = 2 ** 31 - 1;

/** What the servers of one checkout run on. */
export interface Backend {
  readonly checkout: string;
  readonly databaseUrl: string;
  /** Undefined: limits in memory */
  readonly redisUrl: string | undefined;
  readonly keys: Keys;
  /** Since the start of PostgreSQL and Redis; 0 without Redis */
  cpuTimes(): Omit<CpuTimes, 'server'>;
  close(): Promise<void>;
}

export interface BackendOptions {
  readonly postgres: BenchPostgres;
  /** Names the database */
  readonly name: string;
  readonly checkout: string;
  readonly withRedis: boolean;
}

/**
 * Sets up a database with 100,000 pets and API keys, and a Redis. Two checkouts never share them: their migrations and
 * what they keep in Redis may differ. All content goes in through the checkout's command line, or as columns that every
 * version has.
 */
export async function createBackend({
  postgres,
  name,
  checkout,
  withRedis,
}: BackendOptions): Promise<Backend> {
  const databaseUrl = await postgres.createDatabase(name, checkout);
  await addPets(databaseUrl);
  const keys = await createKeys(checkout, databaseUrl);
  const redis = withRedis ? await startRedis() : undefined;
  const redisPid = redis && (await findRedisProcess(redis.url));
  return {
    checkout,
    databaseUrl,
    redisUrl: redis?.url,
    keys,
    cpuTimes: () => ({
      postgres: postgres.cpuTime(),
      redis: redisPid === undefined ? 0 : readCpuTime(redisPid),
    }),
    close: async () => redis?.close(),
  };
}

async function findRedisProcess(url: string): Promise<number> {
  const client = new Redis(url);
  const info = await client.info('server');
  client.disconnect();
  return Number(/process_id:(\d+)/.exec(info)?.[1]);
}

async function createKeys(checkout: string, databaseUrl: string): Promise<Keys> {
  const run = (...args: string[]) => runCommand(checkout, databaseUrl, 'keys', ...args);
  const create = async (perDay: number) => {
    const limits = ['--plan', 'enterprise', '--per-minute', `${UNLIMITED}`, '--per-day', `${perDay}`];
    const json = await run('create', '--name', 'bench', '--json', ...limits);
    return JSON.parse(json) as { id: string; key: string };
  };
  const unlimited = await create(UNLIMITED);
  const exhausted = await create(1);
  const replaced = await create(UNLIMITED);
  await run('rotate', replaced.id);
  return { unlimited: unlimited.key, exhausted: exhausted.key, unknown: replaced.key };
}

export async function addPets(databaseUrl: string): Promise<void> {
  await withClient(databaseUrl, async (client) => {
    await client.query(
      `INSERT INTO pets (name, category_id, status)
      SELECT 'Pet number ' || n, n % 100 + 1, ($1::pet_status[])[n % 3 + 1] FROM generate_series(1, $2::int) AS n`,
      [STATUSES, PET_COUNT],
    );
    await client.query('VACUUM ANALYZE pets');
  });
}
