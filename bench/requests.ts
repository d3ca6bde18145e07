import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { openEmbedded } from '@animal-store/embedded-postgres';
import pg from 'pg';
import { openDatabase } from '../src/database/client.js';
import { applyMigrations } from '../src/database/migrations.js';
import { generateKey } from '../src/keys/format.js';
import { createKeyStore } from '../src/keys/store.js';
import { startRedis } from '../test/support/redis.js';
import { createTemporaryFolder } from '../test/support/temporary-folder.js';
import { type Case, type CaseName, cases, type Keys, PETS, STATUSES } from './cases.js';
import type { LoadOrder, LoadReport } from './load.js';
import { type Results, writeResults } from './results.js';
import { type BenchServer, leaveServerCore, type ServerPlan, startServer } from './servers.js';
import { median, printTable } from './table.js';

const CONNECTIONS = 32;
const MOST = 2 ** 31 - 1;

interface Measurement extends LoadReport {
  /** Of the server, in microseconds */
  readonly cpuPerRequest: number;
}

/**
 * Options: `--embedded` (limits in memory), `--rounds=N`, `--seconds=N`, `--only=case,case`, `--servers=floor,service`,
 * `--profile` (a .cpuprofile of the service in the working directory), `--write` (bench/RESULTS.md).
 */
export async function benchRequests(options: ReadonlyMap<string, string>): Promise<void> {
  leaveServerCore();
  const rounds = Number(options.get('rounds') ?? 3);
  const seconds = Number(options.get('seconds') ?? 3);
  const names = (options.get('only')?.split(',') ?? Object.keys(cases)) as CaseName[];
  const stage = await setStage(options.has('embedded'));
  const wanted = options.get('servers')?.split(',');
  const plans = planServers(stage, options.has('profile')).filter(
    ({ name }) => wanted?.includes(name) ?? true,
  );
  const servers: BenchServer[] = [];
  for (const plan of plans) servers.push(await startServer(plan));
  for (const { port } of servers) await spend(port, stage.keys.spent);
  const load = fork(new URL('./load.ts', import.meta.url));
  const results = new Map<string, Measurement[]>();
  try {
    for (let round = 0; round <= rounds; round += 1) {
      for (const name of names) {
        for (const server of servers) {
          if (server.name === 'floor' && cases[name].path(1).startsWith('/trpc')) continue;
          const key = `${server.name} ${name}`;
          // The first round warms up.
          const measured = await measure(load, server, name, stage.keys, round === 0 ? 1.5 : seconds);
          if (round > 0) results.set(key, [...(results.get(key) ?? []), measured]);
        }
      }
    }
    const tables = report(names, servers, results);
    if (options.has('write')) {
      await writeResults({ ...tables, ...stage, rounds, seconds, connections: CONNECTIONS });
    }
  } finally {
    load.disconnect();
    for (const server of servers) await server.close();
    await stage.close();
  }
}

const FLOOR_OF: Partial<Record<CaseName, CaseName>> = { rpcList20: 'list20', rpcGet: 'get', rpcBatch: 'get' };

function report(
  names: readonly CaseName[],
  servers: readonly BenchServer[],
  results: ReadonlyMap<string, readonly Measurement[]>,
): Pick<Results, 'headings' | 'rows' | 'memory'> {
  const find = (server: string, name: CaseName, member: keyof Measurement) =>
    median((results.get(`${server} ${name}`) ?? []).map((measured) => measured[member]));
  const perSecond = (server: string, name: CaseName) =>
    find(server, name, 'requests') / find(server, name, 'seconds');
  const headings = [
    'case',
    'server',
    'requests/s',
    'of the floor',
    'CPU µs',
    'of the floor',
    'p50 ms',
    'p99 ms',
  ];
  const rows = names.flatMap((name) =>
    servers
      .filter(({ name: server }) => results.has(`${server} ${name}`))
      .map(({ name: server }) => {
        const base = FLOOR_OF[name] ?? name;
        const cpu = find(server, name, 'cpuPerRequest');
        return [
          (cases[name] as Case).name,
          server,
          Math.round(perSecond(server, name)),
          `${Math.round((100 * perSecond(server, name)) / perSecond('floor', base))} %`,
          cpu.toFixed(1),
          `${Math.round((100 * find('floor', base, 'cpuPerRequest')) / cpu)} %`,
          find(server, name, 'p50').toFixed(2),
          find(server, name, 'p99').toFixed(2),
        ];
      }),
  );
  const memory = servers.map((server) => [server.name, Math.round(server.peakMemory())]);
  printTable(headings, rows);
  printTable(['server', 'peak memory MB'], memory);
  return { headings, rows, memory };
}

export async function measure(
  load: ChildProcess,
  server: BenchServer,
  name: CaseName,
  keys: Keys,
  seconds: number,
): Promise<Measurement> {
  const before = server.cpu();
  const order: LoadOrder = { name, port: server.port, keys, connections: CONNECTIONS, seconds };
  load.send(order);
  const [answer] = (await once(load, 'message')) as [LoadReport | { fault: string }];
  if ('fault' in answer) throw new Error(`${server.name}: ${answer.fault}`);
  return { ...answer, cpuPerRequest: (server.cpu() - before) / answer.requests };
}

/** Uses up the one request of a day. */
async function spend(port: number, key: string): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${port}/v1/pets`, {
    headers: { authorization: `Bearer ${key}` },
  });
  await answer.arrayBuffer();
}

export function planServers({ databaseUrl, redisUrl }: Stage, isProfiled = false): ServerPlan[] {
  const environment = {
    DATABASE_URL: databaseUrl,
    ...(redisUrl === undefined ? {} : { REDIS_URL: redisUrl }),
    ANONYMOUS_PER_MINUTE: '1000000000',
  };
  return [
    { name: 'floor', command: ['--import', 'tsx', 'bench/floor.ts'], environment },
    {
      name: 'service',
      // As `npm start` does
      command: [...(isProfiled ? ['--cpu-prof'] : []), '--max-old-space-size=1536', 'dist/main.js'],
      environment: { ...environment, APP_ENV: 'staging' },
    },
    { name: 'documented', command: ['--import', 'tsx', 'bench/documented.ts'], environment },
  ];
}

export interface Stage {
  readonly databaseUrl: string;
  /** Undefined: limits in memory */
  readonly redisUrl: string | undefined;
  readonly keys: Keys;
  close(): Promise<void>;
}

/** PostgreSQL with 100,000 pets and two keys, and Redis: own ones, so that they leave the servers' core alone. */
export async function setStage(isEmbedded: boolean): Promise<Stage> {
  const dataDir = await createTemporaryFolder();
  const postgres = await openEmbedded({ dataDir, role: 'guest', log: () => {} });
  await applyMigrations(postgres.url);
  await fill(postgres.url);
  const database = openDatabase(postgres.url, () => {});
  const store = createKeyStore(database, 'as_test_');
  const issue = async (perDay: number) => {
    const { key } = await store.create({
      name: 'bench',
      plan: 'enterprise',
      perMinute: MOST,
      perDay,
      expiresAt: null,
    });
    return key;
  };
  const keys: Keys = { plenty: await issue(MOST), spent: await issue(1), unknown: generateKey('as_test_') };
  await database.close();
  const redis = isEmbedded ? null : await startRedis();
  return {
    databaseUrl: postgres.url,
    redisUrl: redis?.url,
    keys,
    async close() {
      await redis?.close();
      await postgres.release();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

async function fill(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(
    `INSERT INTO pets (name, category_id, status)
    SELECT 'Pet number ' || n, n % 100 + 1, ($1::pet_status[])[n % 3 + 1] FROM generate_series(1, $2::int) AS n`,
    [STATUSES, PETS],
  );
  await client.query('VACUUM ANALYZE pets');
  await client.end();
}
