import { writeFile } from 'node:fs/promises';
import { cpus, release, totalmem, type } from 'node:os';
import { Redis } from 'ioredis';
import { PET_COUNT } from './cases.js';
import { withClient } from './postgres.js';
import type { Row, Summary } from './report.js';
import type { RoundOptions } from './rounds.js';
import { canPin } from './server-process.js';

export interface Results extends Summary, RoundOptions {
  readonly databaseUrl: string;
  /** Undefined: limits in memory */
  readonly redisUrl: string | undefined;
}

/** Writes a measurement to bench/RESULTS.md, with a description of the machine. */
export async function writeResults(results: Results): Promise<void> {
  const sections = [
    '# Requests beside a hand-written baseline',
    'Written by `npm run bench -- requests --write`: run it again instead of editing this file.',
    '## The machine',
    await describeMachine(results),
    '## How it was run',
    describeRun(results),
    '## Requests',
    toMarkdown(results.headings, results.rows),
    '## Memory',
    toMarkdown(['server', 'peak memory MB'], results.memory),
    '## How to read it',
    EXPLANATION,
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
    ? 'The servers shared one core, of which only one at a time was busy; the load, PostgreSQL' +
      `${redisUrl === undefined ? '' : ' and Redis'} shared another.`
    : 'No process had a core of its own, because this machine has no `taskset`.';
  return (
    `Each case ran on all servers one after the other for ${seconds} s each, in ${rounds} round(s) after one to warm ` +
    `up, on ${connections} connections, each of which waits for its response; ${PET_COUNT.toLocaleString('en')} pets. ` +
    `${cores} Every response was checked before it was counted. The figures are medians of the rounds, and the ` +
    "percentages are medians of each round's ratio."
  );
}

const EXPLANATION =
  '`baseline` is bench/baseline.ts: the REST side written by hand, with the same checks, limits and headers, and ' +
  'neither a log nor metrics. `service` is this service as it is deployed, with its log at info. `idiomatic` is ' +
  'bench/idiomatic.ts: the same packages put together as their documentation shows, also without a log and ' +
  'metrics. The first "of the baseline" compares requests per second, the second the CPU time of the server per ' +
  'request, which says how much one core can do whatever else the server had to wait for; 100 % is the ' +
  "baseline, more is better. The baseline has no tRPC: tRPC cases are compared with the baseline's REST response " +
  'to the same query, a batch of ten gets with a single get. "Over the limit" is a key that has used up its ' +
  'daily limit. Peak memory is resident memory since the start of the process; for `baseline` and `idiomatic` it ' +
  'includes tsx, which runs their TypeScript.';

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
  const { rows } = await withClient(url, (client) =>
    client.query<{ server_version: string }>('SHOW server_version'),
  );
  return rows[0]?.server_version ?? 'unknown';
}

async function readRedisVersion(url: string): Promise<string> {
  const client = new Redis(url);
  const info = await client.info('server');
  client.disconnect();
  const valkey = /valkey_version:(\S+)/.exec(info)?.[1];
  return valkey === undefined ? `Redis ${/redis_version:(\S+)/.exec(info)?.[1]}` : `Valkey ${valkey}`;
}
