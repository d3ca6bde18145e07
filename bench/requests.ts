import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type Backend, createBackend } from './backend.js';
import { CASE_IDS, type Load } from './cases.js';
import { THIS_CHECKOUT } from './checkout.js';
import { compileServers } from './compile.js';
import { readNames, readNumber, readNumbers } from './option-values.js';
import { startPostgres } from './postgres.js';
import { printReport } from './report.js';
import { writeResults } from './results.js';
import { measureRounds } from './rounds.js';
import { leaveServerCore } from './server-process.js';
import { COMPARED_NAMES, isExample, SERVER_NAMES, startServer } from './servers.js';

const OPTIONS = {
  rounds: { type: 'string', default: '3' },
  /** For each case and server at each load in a round */
  seconds: { type: 'string', default: '2.5' },
  /** The same before any counts */
  'warm-up': { type: 'string', default: '3' },
  /** How many API keys take turns, comma-separated. Default: 256,1,10000; with --compare: 256,1 */
  keys: { type: 'string' },
  /** Comma-separated. Default: 1,8,32,128,512; with --compare: 32 */
  connections: { type: 'string' },
  /**
   * Those of the connections that tRPC cases, and all numbers of keys but the first, are measured at. Default: 32, or
   * all if that is not among them
   */
  'main-connections': { type: 'string' },
  /** Comma-separated, as in bench/cases.ts */
  only: { type: 'string', default: CASE_IDS.join() },
  /** Comma-separated. Default: baseline,hono,service; with --compare: before,service */
  servers: { type: 'string' },
  /** The folders of one or two other, built checkouts, comma-separated: `before` and `older` */
  compare: { type: 'string' },
  /** Limits in memory instead of Redis */
  embedded: { type: 'boolean', default: false },
  /** A module that this service loads before its own, such as tracing.mjs */
  import: { type: 'string' },
  /** Leaves a .cpuprofile of the service in the working directory, one per round */
  profile: { type: 'boolean', default: false },
  /** Writes bench/RESULTS.md */
  write: { type: 'boolean', default: false },
} as const;

/** Sends each case to the service and, for comparison, to others. */
export async function benchRequests(args: string[]): Promise<void> {
  const { names, caseIds, run, folders, embedded, profile, write, ...values } = readOptions(args);
  const importedModule = values.import === undefined ? undefined : resolve(values.import);
  leaveServerCore();
  const opened: { close(): Promise<void> }[] = [];
  const closeLater = <T extends { close(): Promise<void> }>(resource: T): T => {
    opened.push(resource);
    return resource;
  };
  try {
    const { folder } = closeLater(await compileServers(names.filter(isExample)));
    const postgres = closeLater(await startPostgres());
    const keyCount = Math.max(...run.loads.map(({ keys }) => keys));
    const addBackend = async (name: string, checkout: string) =>
      closeLater(await createBackend(postgres, { name, checkout, keyCount, withRedis: !embedded }));
    const current = await addBackend('current', THIS_CHECKOUT);
    const compared = new Map<string, Backend>();
    for (const [name, checkout] of folders) compared.set(name, await addBackend(name, resolve(checkout)));
    const isExhausted = caseIds.includes('overLimit');
    const options = { folder, current, compared, isProfiled: profile, importedModule, isExhausted };
    const starts = names.map((name) => () => startServer(name, options));
    const report = { ...(await measureRounds(starts, caseIds, run)), names, caseIds, run };
    printReport(report);
    if (write) await writeResults(report, current);
  } finally {
    for (const resource of opened.toReversed()) await resource.close();
  }
}

const MAIN_CONNECTIONS = 32;

function readOptions(args: string[]) {
  const { values } = parseArgs({ args, options: OPTIONS });
  const { rounds, seconds, only, compare, write } = values;
  const folders = (compare?.split(',') ?? []).map((folder, index) => {
    const name = COMPARED_NAMES[index];
    if (name === undefined) throw new Error(`--compare takes at most ${COMPARED_NAMES.length} folders`);
    return [name, folder] as const;
  });
  if (write && compare !== undefined) throw new Error('bench/RESULTS.md does not hold comparisons');
  const defaults =
    compare === undefined
      ? { servers: 'baseline,hono,service', connections: '1,8,32,128,512', keys: '256,1,10000' }
      : { servers: [...folders.map(([name]) => name), 'service'].join(), connections: '32', keys: '256,1' };
  const readList = (option: 'keys' | 'connections') =>
    readNumbers(option, values[option] ?? defaults[option]);
  const connections = readList('connections');
  const main = values['main-connections'];
  const mainConnections =
    main === undefined
      ? connections.filter((count) => count === MAIN_CONNECTIONS || !connections.includes(MAIN_CONNECTIONS))
      : readNumbers('main-connections', main);
  const loads = readList('keys').flatMap((keys, index): Load[] =>
    (index === 0 ? connections : mainConnections).map((count) => ({ connections: count, keys })),
  );
  return {
    ...values,
    folders,
    names: readNames('servers', values.servers ?? defaults.servers, SERVER_NAMES),
    caseIds: readNames('only', only, CASE_IDS),
    run: {
      rounds: readNumber('rounds', rounds),
      seconds: readNumber('seconds', seconds),
      warmUpSeconds: readNumber('warm-up', values['warm-up']),
      loads,
      rpcConnections: mainConnections,
    },
  };
}
