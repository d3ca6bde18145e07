import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type Backend, createBackend } from './backend.js';
import { THIS_CHECKOUT } from './checkout.js';
import { readNumber, readNumbers } from './option-values.js';
import { startPostgres } from './postgres.js';
import { sendLoad, startLoad } from './rounds.js';
import { leaveServerCore } from './server-process.js';
import { type BenchServer, startServer } from './servers.js';
import { startStandby } from './standby.js';
import { median, printTable, type Table, writeTable } from './table.js';

const OPTIONS = {
  /** Comma-separated numbers. The processes share the creates. */
  processes: { type: 'string', default: '1,2,4,8,16' },
  /** How long a synchronous standby takes to have a commit, in milliseconds; 0: there is none */
  delays: { type: 'string', default: '0,9,24' },
  /** Creates a second of all processes together */
  rate: { type: 'string', default: '200' },
  /** Of each measurement */
  seconds: { type: 'string', default: '8' },
  rounds: { type: 'string', default: '3' },
  /** The folder of another, built checkout to measure in turns with this one */
  compare: { type: 'string' },
  /** Writes the table of bench/CAPACITY.md */
  write: { type: 'boolean', default: false },
} as const;

const KEYS = 256;
const CONNECTIONS = 64;
const WARM_UP_SECONDS = 3;
/** As many as two versions of the most processes open */
const SETTINGS = ['ALTER SYSTEM SET max_connections = 600'];

interface Version {
  readonly name: string;
  readonly backend: Backend;
  readonly servers: BenchServer[];
}

/** How long creates take that several processes share: each waits for the turn of the table, and holds it until it is committed. */
export async function benchCreates(args: string[]): Promise<void> {
  const { values } = parseArgs({ args, options: OPTIONS });
  const [rate, seconds] = [readNumber('rate', values.rate), readNumber('seconds', values.seconds)];
  const rounds = readNumber('rounds', values.rounds);
  leaveServerCore();
  const postgres = await startPostgres(SETTINGS);
  const generator = startLoad();
  const before = values.compare === undefined ? [] : [['before', resolve(values.compare)]];
  const versions: Version[] = [];
  for (const [name = '', checkout = ''] of [...before, ['current', THIS_CHECKOUT]]) {
    const backend = await createBackend(postgres, { name, checkout, keyCount: KEYS, withRedis: true });
    versions.push({ name, backend, servers: [] });
  }
  const measure = async ({ backend, servers }: Version) => {
    const load = (duration: number) =>
      sendLoad(generator, {
        caseIds: ['create'],
        ports: servers.map(({ port }) => port),
        keys: backend.keys.unlimited,
        connections: CONNECTIONS,
        requestsPerSecond: rate,
        seconds: duration,
      });
    await load(WARM_UP_SECONDS);
    return load(seconds);
  };
  const rows: (string | number)[][] = [];
  for (const processes of readNumbers('processes', values.processes)) {
    for (const { backend, servers } of versions)
      while (servers.length < processes) servers.push(await startServer('service', { current: backend }));
    for (const delayMs of values.delays.split(',').map(Number)) {
      process.stderr.write(`${processes} processes, ${delayMs} ms\n`);
      const standby = delayMs > 0 ? await startStandby(postgres.url, delayMs) : undefined;
      const found = new Map(
        versions.map(({ name }) => [name, { requests: [], p50: [], p99: [] } as Figures]),
      );
      for (let round = 0; round < rounds; round += 1)
        for (const version of round % 2 === 0 ? versions : versions.toReversed()) {
          const figures = found.get(version.name) as Figures;
          // A response that is not a 201 ends a measurement. The other connections go on to its end.
          const report = await measure(version).catch(() => delay(seconds * 1_000));
          if (report === undefined) continue;
          figures.requests.push(report.requests / seconds);
          figures.p50.push(report.p50);
          figures.p99.push(report.p99);
        }
      await standby?.close();
      for (const [name, figures] of found)
        rows.push([
          name === 'before' ? `before: ${processes}` : String(processes),
          delayMs,
          Math.round(median(figures.requests)),
          median(figures.p50).toFixed(1),
          median(figures.p99).toFixed(1),
          rounds - figures.p50.length,
        ]);
    }
  }
  for (const { servers, backend } of versions) {
    await Promise.all(servers.map((server) => server.close()));
    await backend.close();
  }
  generator.disconnect();
  await postgres.close();
  const table: Table = {
    headings: ['processes', 'standby ms', 'creates/s', 'p50 ms', 'p99 ms', 'ended by a 503'],
    rows,
  };
  printTable(table);
  if (values.write) writeTable('bench/CAPACITY.md', 'creates', table);
}

interface Figures {
  readonly requests: number[];
  readonly p50: number[];
  readonly p99: number[];
}
