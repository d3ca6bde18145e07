import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { createBackend } from './backend.js';
import { CASE_IDS } from './cases.js';
import { THIS_CHECKOUT } from './checkout.js';
import { printComparison } from './comparison.js';
import { compileServers } from './compile.js';
import { readNames, readNumber, readNumbers } from './option-values.js';
import { startPostgres } from './postgres.js';
import { printReport } from './report.js';
import { writeResults } from './results.js';
import { measureRounds, type StartServer } from './rounds.js';
import { leaveServerCore } from './server-process.js';
import { isExample, SERVER_NAMES, startServer } from './start-server.js';

const OPTIONS = {
  rounds: { type: 'string', default: '3' },
  /** For each case and server at each load in a round */
  seconds: { type: 'string', default: '2.5' },
  /** Comma-separated loads. Default: 1,8,32,128,512; with --compare: 32 */
  connections: { type: 'string' },
  /** Those of the loads that tRPC cases are measured at, comma-separated */
  'rpc-connections': { type: 'string', default: '32' },
  /** Comma-separated, as in bench/cases.ts */
  only: { type: 'string', default: CASE_IDS.join() },
  /** Comma-separated, idiomatic too. Default: baseline,hono,service,raw; with --compare: before,service */
  servers: { type: 'string' },
  /** The folder of another, built checkout */
  compare: { type: 'string' },
  /** Limits in memory instead of Redis */
  embedded: { type: 'boolean', default: false },
  /** Leaves a .cpuprofile of the service in the working directory, one per round */
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
    const starts = names.map((name): StartServer => {
      return (started) => startServer(name, { folder, current, before, started, isProfiled: profile });
    });
    const report = { ...(await measureRounds(starts, caseIds, run)), names, caseIds, run };
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
    names: readNames('servers', servers ?? defaultServers, SERVER_NAMES),
    caseIds: readNames('only', only, CASE_IDS),
    run: {
      rounds: readNumber('rounds', rounds),
      seconds: readNumber('seconds', seconds),
      connections: readNumbers('connections', connections ?? (isComparison ? '32' : '1,8,32,128,512')),
      rpcConnections: readNumbers('rpc-connections', values['rpc-connections']),
    },
  };
}
