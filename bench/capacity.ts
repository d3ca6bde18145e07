import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import { type Backend, createBackend } from './backend.js';
import { MIX } from './cases.js';
import { THIS_CHECKOUT } from './checkout.js';
import { readNumber, readNumbers } from './option-values.js';
import { startPostgres, withClient } from './postgres.js';
import { sendLoad, startLoad } from './rounds.js';
import { leaveServerCore } from './server-process.js';
import { type BenchServer, startServer } from './servers.js';
import { printTable, type Table, writeTable } from './table.js';

const OPTIONS = {
  /** Comma-separated numbers */
  processes: { type: 'string', default: '1,2,4,8' },
  keys: { type: 'string', default: '1,256,10000' },
  /** Requests a second of all processes together */
  rate: { type: 'string', default: '2000' },
  /** Of each measurement. Usage is stored every 24 s. */
  seconds: { type: 'string', default: '48' },
  /** The folder of another, built checkout to measure first */
  compare: { type: 'string' },
  /** Writes the tables of bench/CAPACITY.md and docs/capacity.md */
  write: { type: 'boolean', default: false },
} as const;

const CONNECTIONS = 64;
const WARM_UP_SECONDS = 8;
const SETTINGS = [
  `ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'`,
  'ALTER SYSTEM SET max_connections = 300',
];
const STATEMENTS = `
  SELECT CASE WHEN query LIKE '%AS known (%' THEN 'checks' WHEN query LIKE '%api_keys" WHERE hash%' THEN 'lookups'
    WHEN query LIKE '%INSERT INTO%api_key_usage%' THEN 'usage' ELSE 'other' END AS kind,
    sum(calls)::int AS calls, sum(rows)::int AS rows
  FROM pg_stat_statements JOIN pg_database ON oid = dbid
  WHERE datname = current_database() AND query NOT LIKE '%pg_stat_statements%' GROUP BY 1`;

/** All per second but the CPU times, which are microseconds per request */
interface Sample {
  readonly version: string;
  readonly processes: number;
  readonly keys: number;
  readonly requests: number;
  readonly statements: number;
  readonly rows: number;
  readonly checks: number;
  readonly lookups: number;
  readonly usageStatements: number;
  readonly redisCalls: number;
  readonly cpu: { readonly server: number; readonly postgres: number; readonly redis: number };
}

/** What requests at a fixed rate cost, by the number of processes and of keys; and from that, what more would need. */
export async function benchCapacity(args: string[]): Promise<void> {
  const { values } = parseArgs({ args, options: OPTIONS });
  const keyCounts = readNumbers('keys', values.keys);
  const [rate, seconds] = [readNumber('rate', values.rate), readNumber('seconds', values.seconds)];
  leaveServerCore();
  const postgres = await startPostgres(SETTINGS);
  const generator = startLoad();
  const samples: Sample[] = [];
  const before = values.compare === undefined ? [] : [['before', resolve(values.compare)]];
  for (const [name = '', checkout = ''] of [...before, ['current', THIS_CHECKOUT]]) {
    const keyCount = Math.max(...keyCounts);
    const backend = await createBackend(postgres, { name, checkout, keyCount, withRedis: true });
    const servers: BenchServer[] = [];
    for (const processes of readNumbers('processes', values.processes)) {
      while (servers.length < processes) {
        servers.push(await startServer('service', { current: backend }));
      }
      for (const keys of keyCounts) {
        process.stderr.write(`${name}: ${processes} processes, ${keys} keys\n`);
        const load = (duration: number) =>
          sendLoad(generator, {
            caseIds: MIX,
            ports: servers.map(({ port }) => port),
            keys: backend.keys.unlimited.slice(0, keys),
            connections: CONNECTIONS,
            requestsPerSecond: rate,
            seconds: duration,
          });
        await load(WARM_UP_SECONDS);
        samples.push({
          version: name,
          processes,
          keys,
          ...(await measure(backend, servers, () => load(seconds))),
        });
      }
    }
    for (const server of servers) await server.close();
    await backend.close();
  }
  generator.disconnect();
  await postgres.close();
  printTable(listBackground(samples));
  const [requests, needs] = [listRequests(samples), listNeeds(samples)];
  for (const table of [requests, needs]) printTable(table);
  if (!values.write) return;
  writeTable('bench/CAPACITY.md', 'requests', requests);
  writeTable('docs/capacity.md', 'needs', needs);
}

async function measure(
  { databaseUrl, redisUrl = '', cpuTimes }: Backend,
  servers: readonly BenchServer[],
  load: () => Promise<{ readonly sent: number }>,
): Promise<Omit<Sample, 'version' | 'processes' | 'keys'>> {
  const readCpu = () => {
    const server = servers.reduce((sum, each) => sum + each.cpuTimes().server, 0);
    return { ...cpuTimes(), server };
  };
  return withClient(databaseUrl, async (client) => {
    const redis = new Redis(redisUrl);
    await client.query('CREATE EXTENSION IF NOT EXISTS pg_stat_statements');
    await client.query('SELECT pg_stat_statements_reset()');
    await redis.config('RESETSTAT');
    const before = { ...readCpu(), at: performance.now() };
    const { sent } = await load();
    const after = { ...readCpu(), at: performance.now() };
    const { rows } = await client.query<{ kind: string; calls: number; rows: number }>(STATEMENTS);
    const info = await redis.info('commandstats');
    redis.disconnect();
    const seconds = (after.at - before.at) / 1000;
    const sum = (figure: 'calls' | 'rows', ...kinds: string[]) =>
      rows.reduce((total, row) => (kinds.includes(row.kind) ? total + row[figure] : total), 0) / seconds;
    const all = ['checks', 'lookups', 'usage', 'other'];
    const perRequest = (part: 'server' | 'postgres' | 'redis') => (after[part] - before[part]) / sent;
    return {
      requests: sent / seconds,
      statements: sum('calls', ...all),
      rows: sum('rows', ...all),
      checks: sum('calls', 'checks'),
      lookups: sum('calls', 'lookups'),
      usageStatements: sum('calls', 'usage'),
      redisCalls: Number(/cmdstat_evalsha:calls=(\d+)/.exec(info)?.[1] ?? 0) / seconds,
      cpu: { server: perRequest('server'), postgres: perRequest('postgres'), redis: perRequest('redis') },
    };
  });
}

const load = ({ version, processes, keys }: Sample) => [
  `${version === 'before' ? 'before: ' : ''}${processes}`,
  keys,
];

function listRequests(samples: readonly Sample[]): Table {
  return {
    headings: [
      ...[
        'processes',
        'keys',
        'requests/s',
        'statements per request',
        'rows per request',
        'Redis calls per request',
      ],
      ...['service µs', 'PostgreSQL µs', 'Redis µs'],
    ],
    rows: samples.map((sample) => {
      const { requests, statements, rows, redisCalls, cpu } = sample;
      const counts = [statements, rows, redisCalls].map((count) => (count / requests).toFixed(2));
      const times = [cpu.server, cpu.postgres, cpu.redis].map((time) => time.toFixed(0));
      return [...load(sample), Math.round(requests), ...counts, ...times];
    }),
  };
}

function listBackground(samples: readonly Sample[]): Table {
  return {
    headings: [
      ...['processes', 'keys', 'statements/s', 'rows/s', 'Redis calls/s', 'checks of keys in use/s'],
      ...['key look-ups/s', 'statements of usage/s'],
    ],
    rows: samples.map((sample) => {
      const { statements, rows, redisCalls, checks, lookups, usageStatements } = sample;
      const all = [statements, rows, redisCalls, checks, lookups, usageStatements];
      return [...load(sample), ...all.map((count) => (count < 10 ? count.toFixed(1) : Math.round(count)))];
    }),
  };
}

/** Of a core, so that it can take a peak */
const SHARE = 2 / 3;
const CONNECTIONS_PER_PROCESS = 12;

/** Arithmetic: from what one process needs for each request with the most keys. */
function listNeeds(samples: readonly Sample[]): Table {
  const { cpu } = samples
    .filter(({ version }) => version === 'current')
    .sort((a, b) => a.processes - b.processes || b.keys - a.keys)[0] as Sample;
  const cores = (rate: number, us: number) => Math.ceil((rate * us) / 1e6 / SHARE);
  return {
    headings: ['requests/s', 'processes', 'PostgreSQL cores', 'Redis cores', 'connections', 'creates/s'],
    rows: [1_000, 10_000, 100_000, 1_000_000].map((rate) => {
      const processes = cores(rate, cpu.server);
      const connections = processes * CONNECTIONS_PER_PROCESS;
      return [rate, processes, cores(rate, cpu.postgres), cores(rate, cpu.redis), connections, rate / 10];
    }),
  };
}
