import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { createBackend } from './backend.js';
import { type CaseId, cases } from './cases.js';
import { THIS_CHECKOUT } from './checkout.js';
import { printComparison } from './comparison.js';
import { compileServers } from './compile.js';
import { startPostgres } from './postgres.js';
import { printReport } from './report.js';
import { writeResults } from './results.js';
import { measureRounds } from './rounds.js';
import { leaveServerCore } from './server-process.js';
import type { BenchServer } from './servers.js';
import { isExample, type ServerName, startServer } from './start-server.js';

const OPTIONS = {
  rounds: { type: 'string', default: '3' },
  /** For each case and server at each load in a round */
  seconds: { type: 'string', default: '2.5' },
  /** Comma-separated loads. Default: 1,8,32,128,512; with --compare: 32 */
  connections: { type: 'string' },
  /** Those of the loads that tRPC cases are measured at, comma-separated */
  'rpc-connections': { type: 'string', default: '32' },
  /** Comma-separated, as in bench/cases.ts */
  only: { type: 'string', default: Object.keys(cases).join() },
  /** Comma-separated, idiomatic too. Default: baseline,hono,service,raw; with --compare: before,service */
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
  const opened: { close(): Promise<void> }[] = [];
  const closeLater = <T extends { close(): Promise<void> }>(resource: T): T => {
    opened.push(resource);
    return resource;
  };
  try {
    const { folder } = closeLater(await compileServers(names.filter(isExample)));
    const postgres = closeLater(await startPostgres());
    const addBackend = async (name: string, checkout: string) =>
      closeLater(await createBackend({ postgres, name, checkout, withRedis: !embedded }));
    const current = await addBackend('current', THIS_CHECKOUT);
    const before = compare === undefined ? undefined : await addBackend('before', resolve(compare));
    const servers: BenchServer[] = [];
    for (const name of names) {
      const options = { folder, current, before, started: servers, isProfiled: profile };
      servers.push(closeLater(await startServer(name, options)));
    }
    const samples = await measureRounds(servers, caseIds, run);
    const report = { samples, servers, caseIds, run };
    printReport(report);
    if (before !== undefined) printComparison(report);
    if (write) await writeResults({ ...report, backend: current });
  } finally {
    for (const resource of opened.toReversed()) await resource.close();
  }
}

function readOptions(args: string[]) {
  const { values } = parseArgs({ args, options: OPTIONS });
  const { rounds, seconds, connections, only, servers, compare, write } = values;
  if (write && compare !== undefined) throw new Error('bench/RESULTS.md does not hold comparisons');
  const isComparison = compare !== undefined;
  const defaultServers = isComparison ? 'before,service' : 'baseline,hono,service,raw';
  return {
    ...values,
    names: (servers ?? defaultServers).split(',') as ServerName[],
    caseIds: only.split(',') as CaseId[],
    run: {
      rounds: Number(rounds),
      seconds: Number(seconds),
      connections: (connections ?? (isComparison ? '32' : '1,8,32,128,512')).split(',').map(Number),
      rpcConnections: values['rpc-connections'].split(',').map(Number),
    },
  };
}
