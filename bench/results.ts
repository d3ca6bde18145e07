import { writeFile } from 'node:fs/promises';
import { cpus, release, totalmem, type } from 'node:os';
import { Redis } from 'ioredis';
import type { Backend } from './backend.js';
import { PET_COUNT } from './cases.js';
import { withClient } from './postgres.js';
import {
  batchGain,
  compareWithBaseline,
  describeLoad,
  listFigures,
  listMemory,
  listSlower,
  type Report,
  type Table,
} from './report.js';
import type { RunOptions } from './rounds.js';
import { canPin } from './server-process.js';

export interface Results extends Report {
  readonly backend: Backend;
}

/** Writes a measurement to bench/RESULTS.md, with a description of the machine. */
export async function writeResults({ backend, ...report }: Results): Promise<void> {
  const loads = report.run.connections;
  const sections = [
    '# Requests beside a hand-written baseline',
    'Written by `npm run bench -- requests --write`: run it again instead of editing this file.',
    '## At a glance',
    GLANCE,
    ...loads.flatMap((connections) => [
      `### ${describeLoad(connections)}`,
      toMarkdown(compareWithBaseline(report, connections)),
      ...describeBatches(report, connections),
    ]),
    '## Where the service does worse than the baseline',
    loads.map((connections) => describeSlower(report, connections)).join('\n'),
    '## Memory',
    toMarkdown(listMemory(report)),
    '## The machine',
    await describeMachine(backend),
    '## How it was run',
    describeRun(report.run, backend),
    '## How to read it',
    EXPLANATION,
    '## All figures',
    ...loads.flatMap((connections) => [
      `### All figures: ${describeLoad(connections)}`,
      toMarkdown(listFigures(report, connections)),
    ]),
  ];
  await writeFile(new URL('RESULTS.md', import.meta.url), `${sections.join('\n\n')}\n`);
}

function describeBatches(report: Report, connections: number): string[] {
  const gain = batchGain(report, connections);
  if (Number.isNaN(gain)) return [];
  return [`Over tRPC, batches of ten get ${gain.toFixed(1)} times as many animals a second as single calls.`];
}

function describeSlower(report: Report, connections: number): string {
  const { throughput, p99 } = listSlower(report, connections);
  const list = (items: readonly string[]) => (items.length === 0 ? 'none' : items.join(', '));
  return `- ${describeLoad(connections)}: requests/s: ${list(throughput)}; p99: ${list(p99)}`;
}

async function describeMachine({ databaseUrl, redisUrl }: Backend): Promise<string> {
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

function describeRun({ rounds, seconds }: RunOptions, { redisUrl }: Backend): string {
  const cores = canPin
    ? 'The servers shared one core, of which only one at a time was busy; the load, PostgreSQL' +
      `${redisUrl === undefined ? '' : ' and Redis'} shared another.`
    : 'No process had a core of its own, because this machine has no `taskset`.';
  return (
    `Each case ran on all servers one after the other for ${seconds} s each, in ${rounds} round(s), each with new ` +
    `processes that were warmed up; ${PET_COUNT.toLocaleString('en')} pets. A connection sends its next request when ` +
    `it has the response to the one before. ${cores} Every response was checked before it was counted. The figures are ` +
    "medians of the rounds, and ratios are medians of each round's ratio."
  );
}

const GLANCE =
  'Requests per second of the service, of Hono with Drizzle and of `raw`, in percent of the hand-written baseline ' +
  '(more is better), what share of the limit set by `raw` the service reaches, and the 99th percentile of the ' +
  "latency in multiples of the baseline's (less is better).";

const EXPLANATION = [
  '- `baseline` is bench/baseline.ts: the REST side written by hand, with the same checks, limits and headers, and ' +
    'neither a log nor metrics.',
  '- `hono` is bench/hono.ts: the same with Hono and Drizzle as their documentation shows.',
  '- `service` is this service as `npm start` runs it, with its log at info, on an external PostgreSQL and Redis.',
  '- `raw` is bench/raw.ts: node:http answers with the bytes of the service from memory. Nothing on Node.js is faster.',
  '- `idiomatic` is bench/idiomatic.ts: the packages of the service put together as their documentation shows. It ' +
    'only runs when asked for.',
  '- Only the service and `idiomatic` have tRPC. Its cases are compared with the REST response of the baseline to ' +
    'the same query, a batch of ten gets with a single get.',
  '- "Over the limit" is a key that has used up its daily limit.',
  '- CPU is microseconds per request: of the server, of all processes of PostgreSQL, of Redis, and of the load ' +
    'generator, whose share of a latency is the same for all servers.',
  '- Peak memory is resident memory since the start of the process, over all cases and loads.',
].join('\n');

function toMarkdown({ headings, rows }: Table): string {
  const toLine = (cells: Table['rows'][number]) =>
    `| ${cells.map((cell) => cell.toLocaleString('en')).join(' | ')} |`;
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
