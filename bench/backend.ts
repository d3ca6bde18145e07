import { startRedis } from '@animal-store/limits/testing';
import { Redis } from 'ioredis';
import type pg from 'pg';
import { generateKey, hashKey } from '../packages/platform/src/keys/format.js';
import { type Keys, PET_COUNT, STATUSES } from './case.js';
import { type CpuTimes, readCpuTime } from './cpu-time.js';
import { type BenchPostgres, withClient } from './postgres.js';

const UNLIMITED = 2 ** 31 - 1;

/** What the servers of one checkout run on. */
export interface Backend {
  readonly checkout: string;
  readonly databaseUrl: string;
  /** Undefined: limits in memory */
  readonly redisUrl: string | undefined;
  /** Of PostgreSQL and Redis */
  readonly versions: readonly string[];
  readonly keys: Keys;
  /** Since the start of PostgreSQL and Redis; 0 without Redis */
  cpuTimes(): Omit<CpuTimes, 'server'>;
  close(): Promise<void>;
}

export interface BackendOptions {
  /** Of the database */
  readonly name: string;
  readonly checkout: string;
  /** Of each kind */
  readonly keyCount: number;
  readonly withRedis: boolean;
}

/**
 * Sets up a database with 100,000 pets and API keys, and a Redis. Two checkouts never share them: their migrations and
 * what they keep in Redis may differ. All content goes into columns that every version has; `hint` had another name once.
 */
export async function createBackend(
  postgres: BenchPostgres,
  { name, checkout, keyCount, withRedis }: BackendOptions,
): Promise<Backend> {
  const databaseUrl = await postgres.createDatabase(name, checkout);
  const { keys, version } = await withClient(databaseUrl, async (client) => {
    await addPets(client);
    const { rows } = await client.query<{ version: string }>(
      `SELECT current_setting('server_version') AS version`,
    );
    return { keys: await addKeys(client, keyCount), version: rows[0]?.version };
  });
  const redis = withRedis ? await startRedis() : undefined;
  const info = redis && (await readRedisInfo(redis.url));
  return {
    checkout,
    databaseUrl,
    redisUrl: redis?.url,
    versions: [`PostgreSQL ${version}`, info?.version ?? 'no Redis: limits in memory'],
    keys,
    cpuTimes: () => ({
      postgres: postgres.cpuTime(),
      redis: info === undefined ? 0 : readCpuTime(info.pid),
    }),
    close: async () => redis?.close(),
  };
}

async function addPets(client: pg.Client): Promise<void> {
  await client.query(
    `INSERT INTO pets (name, category_id, status)
    SELECT 'Pet number ' || n, n % 100 + 1, ($1::pet_status[])[n % 3 + 1] FROM generate_series(1, $2::int) AS n`,
    [STATUSES, PET_COUNT],
  );
  await client.query('VACUUM ANALYZE pets');
}

async function addKeys(client: pg.Client, count: number): Promise<Keys> {
  const generate = () => Array.from({ length: count }, () => generateKey('as_test_'));
  const hint = await client.query(
    `SELECT attname AS name FROM pg_attribute
    WHERE attrelid = 'api_keys'::regclass AND attname IN ('hint', 'start')`,
  );
  const add = async (perDay: number) => {
    const keys = generate();
    await client.query(
      `INSERT INTO api_keys (name, hash, ${hint.rows[0]?.name}, plan, per_minute, per_day)
      SELECT 'bench', hash, 'as_test_0000', 'enterprise', $2, $3 FROM unnest($1::bytea[]) AS hash`,
      [keys.map(hashKey), UNLIMITED, perDay],
    );
    return keys;
  };
  const keys = { unlimited: await add(UNLIMITED), exhausted: await add(1), unknown: generate() };
  await client.query('VACUUM ANALYZE api_keys');
  return keys;
}

async function readRedisInfo(url: string): Promise<{ readonly pid: number; readonly version: string }> {
  const client = new Redis(url);
  const info = await client.info('server');
  client.disconnect();
  const valkey = /valkey_version:(\S+)/.exec(info)?.[1];
  return {
    pid: Number(/process_id:(\d+)/.exec(info)?.[1]),
    version: valkey === undefined ? `Redis ${/redis_version:(\S+)/.exec(info)?.[1]}` : `Valkey ${valkey}`,
  };
}
