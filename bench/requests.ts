import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type Backend, createBackend } from './backend.js';
import { type CaseId, cases } from './cases.js';
import { THIS_CHECKOUT } from './checkout.js';
import { startPostgres } from './postgres.js';
import { printComparison, printSummary } from './report.js';
import { writeResults } from './results.js';
import { measureRounds } from './rounds.js';
import { leaveServerCore } from './server-process.js';
import { type BenchServer, type ServerName, startExample, startService } from './servers.js';

const OPTIONS = {
  rounds: { type: 'string', default: '3' },
  /** For each case and server in a round */
  seconds: { type: 'string', default: '3' },
  connections: { type: 'string', default: '32' },
  /** Comma-separated, as in bench/cases.ts */
  only: { type: 'string', default: Object.keys(cases).join() },
  /** Comma-separated. Default: baseline,service,idiomatic; with --compare: before,service */
  servers: { type: 'string' },
  /** The folder of another, built checkout */
  compare: { type: 'string' },
  /** Limits in memory instead of Redis */
  embedded: { type: 'boolean', default: false },
  /** Leaves a .cpuprofile of the service in the working directory */
  profile: { type: 'boolean', default: false },
  /** Writes bench/RESULTS.md */
  write: { type: 'boolean', default: false },
} as const;

/** Sends each case to the service and, for comparison, to others. */
export async function benchRequests(args: string[]): Promise<void> {
  const { names, caseIds, run, compare, embedded, profile, write } = readOptions(args);
  leaveServerCore();
  const postgres = await startPostgres();
  const backends: Backend[] = [];
  const servers: BenchServer[] = [];
  const addBackend = async (name: string, checkout: string) => {
    const backend = await createBackend({ postgres, name, checkout, withRedis: !embedded });
    backends.push(backend);
    return backend;
  };
  try {
    const current = await addBackend('current', THIS_CHECKOUT);
    const before = compare === undefined ? undefined : await addBackend('before', resolve(compare));
    for (const name of names) servers.push(await startServer(name, current, before, profile));
    for (const server of servers) await exhaust(server);
    const samples = await measureRounds(servers, caseIds, run);
    const summary = printSummary(samples, caseIds, servers);
    if (before !== undefined) printComparison(samples, caseIds);
    if (write) await writeResults({ ...summary, ...run, ...current });
  } finally {
    for (const server of servers) await server.close();
    for (const backend of backends) await backend.close();
    await postgres.close();
  }
}

function readOptions(args: string[]) {
  const { values } = parseArgs({ args, options: OPTIONS });
  const { rounds, seconds, connections, only, servers, compare, write } = values;
  if (write && compare !== undefined) throw new Error('bench/RESULTS.md does not hold comparisons');
  const defaultServers = compare === undefined ? 'baseline,service,idiomatic' : 'before,service';
  return {
    ...values,
    names: (servers ?? defaultServers).split(',') as ServerName[],
    caseIds: only.split(',') as CaseId[],
    run: { rounds: Number(rounds), seconds: Number(seconds), connections: Number(connections) },
  };
}

function startServer(
  name: ServerName,
  current: Backend,
  before: Backend | undefined,
  isProfiled: boolean,
): Promise<BenchServer> {
  if (name === 'baseline' || name === 'idiomatic') return startExample(name, current);
  if (name === 'service') return startService(name, current, { isProfiled });
  if (before === undefined) throw new Error(`There is no server ${name}: --compare=FOLDER adds "before"`);
  return startService(name, before);
}

/** Uses up the limit of one request. A server on a busy machine may count its first ones in memory instead of Redis. */
async function exhaust({ name, port, keys }: BenchServer): Promise<void> {
  const headers = { authorization: `Bearer ${keys.exhausted}` };
  for (let attempt = 0; attempt < 10; attempt += 1) {
    const response = await fetch(`http://127.0.0.1:${port}/v1/pets`, { headers });
    await response.arrayBuffer();
    if (response.status === 429) return;
  }
  throw new Error(`The server ${name} does not enforce a limit of one request`);
}
