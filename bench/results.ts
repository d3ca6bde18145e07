import { writeFile } from 'node:fs/promises';
import { cpus, release, totalmem, type } from 'node:os';
import { Redis } from 'ioredis';
import pg from 'pg';
import { PETS } from './cases.js';
import { canPin } from './servers.js';

type Row = readonly (string | number)[];

export interface Results {
  readonly headings: readonly string[];
  /** One per case and server, its cells in the order of the headings */
  readonly rows: readonly Row[];
  /** The name of each server and the most memory that it had, in MB */
  readonly memory: readonly Row[];
  readonly rounds: number;
  /** How long a case is measured in each round */
  readonly seconds: number;
  readonly connections: number;
  readonly databaseUrl: string;
  /** Undefined: limits in memory */
  readonly redisUrl: string | undefined;
}

/** Writes the last measurement down, with the machine that it was made on, to bench/RESULTS.md. */
export async function writeResults(results: Results): Promise<void> {
  const sections = [
    '# Requests beside a hand-written floor',
    'Written by `npm run bench -- requests --write`; made anew rather than edited.',
    '## The machine',
    await describeMachine(results),
    '## How it was run',
    describeRun(results),
    '## Requests',
    toMarkdown(results.headings, results.rows),
    '## Memory',
    toMarkdown(['server', 'peak memory MB'], results.memory),
    '## How to read it',
    READING,
  ];
  await writeFile(new URL('RESULTS.md', import.meta.url), `${sections.join('\n\n')}\n`);
}

async function describeMachine({ databaseUrl, redisUrl }: Results): Promise<string> {
  const [core] = cpus();
  const lines = [
    `${core?.model.trim() ?? 'unknown'}, ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GB of memory`,
    `${type()} ${release()}`,
    `Node.js ${process.versions.node}`,
    `PostgreSQL ${await readPostgresVersion(databaseUrl)}`,
    redisUrl === undefined ? 'no Redis: limits in memory' : await readRedisVersion(redisUrl),
  ];
  return lines.map((line) => `- ${line}`).join('\n');
}

function describeRun({ rounds, seconds, connections, redisUrl }: Results): string {
  const cores = canPin
    ? 'Each server had a core of its own; the load, PostgreSQL' +
      `${redisUrl === undefined ? '' : ' and Redis'} shared another.`
    : 'No process had a core of its own, because this machine has no `taskset`.';
  return (
    `All cases and servers took turns in ${rounds} round(s), after one to warm up, ${seconds} s for each; ` +
    `${connections} connections, each of which waits for its answer; ${PETS.toLocaleString('en')} pets. ${cores} ` +
    'Every answer was checked before it was counted. The figures are medians of the rounds.'
  );
}

const READING =
  '`floor` is bench/floor.ts: the REST face by hand, with the same checks, limits and headers, and neither a log nor ' +
  'metrics. `service` is this service as it is deployed, its log at info. `documented` is bench/documented.ts: the same ' +
  'packages as their documentation puts them together, also without a log and metrics. The first "of the floor" ' +
  "compares requests per second, the second the server's CPU time per request, which says what a core is good for " +
  'whatever else held it up; 100 % is the floor, more is better. The floor has no tRPC: a case of that is compared with ' +
  "the floor's REST answer to the same question, a batch of ten gets as one request with one get. A refused key is " +
  'one whose day is used up. Peak memory is resident memory since the start of the process; `floor` and `documented` ' +
  'run from TypeScript through tsx, which is in theirs.';

function toMarkdown(headings: readonly string[], rows: readonly Row[]): string {
  const toLine = (cells: Row) => `| ${cells.map((cell) => cell.toLocaleString('en')).join(' | ')} |`;
  const isText = headings.map((_, column) =>
    rows.every((row) => Number.isNaN(Number.parseFloat(`${row[column]}`))),
  );
  return [toLine(headings), toLine(isText.map((text) => (text ? '---' : '---:'))), ...rows.map(toLine)].join(
    '\n',
  );
}

async function readPostgresVersion(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ server_version: string }>('SHOW server_version');
  await client.end();
  return rows[0]?.server_version ?? 'unknown';
}

async function readRedisVersion(url: string): Promise<string> {
  const client = new Redis(url);
  const info = await client.info('server');
  client.disconnect();
  const valkey = /valkey_version:(\S+)/.exec(info)?.[1];
  return valkey === undefined ? `Redis ${/redis_version:(\S+)/.exec(info)?.[1]}` : `Valkey ${valkey}`;
}
