import { parseArgs } from 'node:util';
import { CASE_IDS, type Load } from './cases.js';
import { readNames, readNumber, readNumbers, readNumbersFromZero } from './option-values.js';
import type { RunOptions } from './rounds.js';
import { COMPARED_NAMES, SERVER_NAMES } from './servers.js';

const OPTIONS = {
  rounds: { type: 'string', default: '3' },
  /** For each case and server at each load in a round */
  seconds: { type: 'string', default: '2.5' },
  /** The same before any counts */
  'warm-up': { type: 'string', default: '3' },
  /** How many API keys take turns, comma-separated. Default: 256,1,10000; with --compare: 256,1 */
  keys: { type: 'string' },
  /** Comma-separated. Default: 1,8,32,128,512; with --compare: 32; with a network: 1,32 */
  connections: { type: 'string' },
  /**
   * Those of the connections that tRPC cases, and all numbers of keys but the first, are measured at. Default: 32, or
   * all if that is not among them
   */
  'main-connections': { type: 'string' },
  /**
   * The round trips to PostgreSQL and to Redis in milliseconds, comma-separated; 0 without a network. Default: 0,1; with
   * --compare: 0
   */
  networks: { type: 'string' },
  /** Comma-separated, as in bench/cases.ts */
  only: { type: 'string', default: CASE_IDS.join() },
  /** Comma-separated. Default: baseline,hono,service; with --compare: before,service */
  servers: { type: 'string' },
  /** The folders of one or two other, built checkouts, comma-separated: `before` and `older` */
  compare: { type: 'string' },
  /** Limits in memory instead of Redis */
  embedded: { type: 'boolean', default: false },
  /** A module that this service loads before its own, such as packages/platform/tracing.mjs */
  import: { type: 'string' },
  /** Leaves a .cpuprofile of the service in the working directory, one per round */
  profile: { type: 'boolean', default: false },
  /** Writes bench/RESULTS.md */
  write: { type: 'boolean', default: false },
} as const;

const MAIN_CONNECTIONS = 32;
const NETWORK_CONNECTIONS = '1,32';

const DEFAULTS = {
  servers: 'baseline,hono,service',
  connections: '1,8,32,128,512',
  keys: '256,1,10000',
  networks: '0,1',
};
/** With --compare */
const COMPARED_DEFAULTS = { connections: '32', keys: '256,1', networks: '0' };

/** The options of `npm run bench`, with one run for each network. */
export function readRequestOptions(args: string[]) {
  const { values } = parseArgs({ args, options: OPTIONS });
  const { compare, write } = values;
  if (write && compare !== undefined) throw new Error('bench/RESULTS.md does not hold comparisons');
  const folders = nameFolders(compare?.split(',') ?? []);
  const servers = [...folders.map(([name]) => name), 'service'].join();
  const defaults = compare === undefined ? DEFAULTS : { ...COMPARED_DEFAULTS, servers };
  const given = { ...defaults, ...values };
  const connections = readNumbers('connections', given.connections);
  const main = values['main-connections'];
  const mainConnections =
    main === undefined
      ? connections.filter((count) => count === MAIN_CONNECTIONS || !connections.includes(MAIN_CONNECTIONS))
      : readNumbers('main-connections', main);
  const keys = readNumbers('keys', given.keys);
  const loads = keys.flatMap((count, index): Load[] =>
    (index === 0 ? connections : mainConnections).map((each) => ({ connections: each, keys: count })),
  );
  const networkLoads = readNumbers('connections', values.connections ?? NETWORK_CONNECTIONS).map(
    (each): Load => ({ connections: each, keys: keys[0] ?? 1 }),
  );
  const toRun = (networkMs: number): RunOptions => ({
    rounds: readNumber('rounds', values.rounds),
    seconds: readNumber('seconds', values.seconds),
    warmUpSeconds: readNumber('warm-up', values['warm-up']),
    loads: networkMs === 0 ? loads : networkLoads,
    rpcConnections: mainConnections,
    networkMs,
  });
  return {
    ...values,
    folders,
    names: readNames('servers', given.servers, SERVER_NAMES),
    caseIds: readNames('only', values.only, CASE_IDS),
    runs: readNumbersFromZero('networks', given.networks).map(toRun),
  };
}

/** The other checkouts, each with the name of its server. */
function nameFolders(folders: readonly string[]) {
  return folders.map((folder, index) => {
    const name = COMPARED_NAMES[index];
    if (name === undefined) throw new Error(`--compare takes at most ${COMPARED_NAMES.length} folders`);
    return [name, folder] as const;
  });
}
