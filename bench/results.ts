import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { cpus, release, totalmem, type } from 'node:os';
import type { Backend } from './backend.js';
import { PET_COUNT } from './case.js';
import { describeLoad } from './cases.js';
import { compareWithBaseline, listMemory, type Report } from './report.js';
import type { RunOptions } from './rounds.js';
import { canPin } from './server-process.js';
import { toMarkdown } from './table.js';

/** Writes a measurement to bench/RESULTS.md, with a description of the machine. */
export async function writeResults(reports: readonly Report[], backend: Backend): Promise<void> {
  const sections = [
    '# Requests beside a hand-written baseline',
    'Written by `npm run bench -- --write`: run it again instead of editing this file.',
    '## At a glance',
    GLANCE,
    ...reports.flatMap(compareAtLoads),
    '## Memory',
    ...reports.slice(0, 1).map((report) => toMarkdown(listMemory(report))),
    '## The machine',
    describeMachine(backend),
    '## How it was run',
    ...reports.slice(0, 1).map(({ run }) => describeRun(run, backend)),
    '## How to read it',
    EXPLANATION,
  ];
  await writeFile(new URL('RESULTS.md', import.meta.url), `${sections.join('\n\n')}\n`);
}

/** A table for each load, under a heading. */
function compareAtLoads(report: Report): string[] {
  const { loads, networkMs } = report.run;
  return loads.flatMap((load) => [
    `### ${describeLoad(load, networkMs)}`,
    toMarkdown(compareWithBaseline(report, load)),
  ]);
}

function describeMachine({ versions }: Backend): string {
  const [core] = cpus();
  const lines = [
    `${core?.model.trim() ?? 'unknown'}, ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GB of memory`,
    `${type()} ${release()}`,
    `Node.js ${process.versions.node}`,
    ...versions,
    `Measured on ${new Date().toISOString().slice(0, 10)}, at ${execFileSync('git', ['rev-parse', '--short=8', 'HEAD'], { encoding: 'utf8' }).trim()}`,
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
    'it has the response to the one before, and makes it with the key that is next in turn over all connections. ' +
    `${cores} Every response was checked before it was counted. The figures are medians of the rounds, and ratios are ` +
    "medians of each round's ratio."
  );
}

const GLANCE =
  'Requests per second of the service and of Hono with Drizzle in percent of the hand-written baseline (more is ' +
  "better), the 99th percentile of the latency in multiples of the baseline's (less is better), and the CPU time of each " +
  'server per request in microseconds (less is better). Requests per second also depend on the core that the load ' +
  'shares with PostgreSQL, which favours a server that asks PostgreSQL for less; CPU time does not. Each heading says ' +
  'how many API keys take turns, on every server: 256 are the normal case, one key for all requests and 10,000 are ' +
  'special ones.';

const EXPLANATION = [
  '- [README.md](README.md) says what the servers are. The service runs as `npm start` runs it, with its log at info, ' +
    'on an external PostgreSQL and Redis; the others have neither a log nor metrics.',
  '- The baseline and Hono look up a key in the database and trust it for a second; the service asks which have changed.',
  '- With a network, a relay holds back each answer of PostgreSQL and of Redis for so many milliseconds, as when these are ' +
    'other machines. The baseline and Hono wait for Redis, and then for PostgreSQL, as anybody would write it. A query of ' +
    'the service begins while its limit is decided, so it waits once.',
  '- Only the service makes the ids of new rows visible in their order, which takes a lock that the others do without.',
  '- Only the service has tRPC and idempotency keys. Its cases are compared with the REST response of the baseline to ' +
    'the same query, a batch of ten gets with a single get, and a keyed create with a create.',
  '- "Bad key": as many well-formed keys take turns that nobody has. "Over the limit": as many keys that have all ' +
    'used up their daily limit.',
  '- CPU is microseconds per request: of the server, of all processes of PostgreSQL, of Redis, and of the load ' +
    'generator, whose share of a latency is the same for all servers.',
  '- Peak memory is resident memory since the start of the process, over all cases, loads and keys.',
].join('\n');
