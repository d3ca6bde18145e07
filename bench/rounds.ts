import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { type CaseId, cases, isRpc, type Load } from './cases.js';
import type { LoadFailure, LoadOrder, LoadReport } from './load.js';
import { type Sample, Samples } from './samples.js';
import type { BenchServer } from './servers.js';

/** For each case and server in a round. A process takes half a minute to become as fast as it will be. */
const WARM_UP = { connections: 32, seconds: 3 };
/** So much memory for new objects that the load generator hardly ever collects garbage while it measures */
const LOAD_FLAGS = ['--max-semi-space-size=64'];

export interface RunOptions {
  readonly rounds: number;
  /** For each case and server at each load in a round */
  readonly seconds: number;
  /** In this order; the first is the one to warm up with. */
  readonly loads: readonly Load[];
  /** The numbers of connections at which tRPC cases are measured */
  readonly rpcConnections: readonly number[];
}

/** Starts a server. `started` are those before it in the list. */
export type StartServer = (started: readonly BenchServer[]) => Promise<BenchServer>;

export interface Measurement {
  readonly samples: Samples;
  /** The most memory that each server took in any round, in MB */
  readonly peakMemory: ReadonlyMap<string, number>;
}

/**
 * Measures each case on all servers one after the other, at each load and in several rounds. The order of the servers
 * is reversed from one round to the next, so that none always follows the same neighbour.
 *
 * Each round has processes of its own, which are warmed up first. Two processes of one program differ by up to a tenth
 * for as long as they run, so that rounds with the same ones would repeat the same chance.
 */
export async function measureRounds(
  starts: readonly StartServer[],
  caseIds: readonly CaseId[],
  options: RunOptions,
): Promise<Measurement> {
  const generator = fork(new URL('./load.ts', import.meta.url), {
    execArgv: [...process.execArgv, ...LOAD_FLAGS],
  });
  const samples = new Samples();
  const peakMemory = new Map<string, number>();
  try {
    for (let round = 1; round <= options.rounds; round += 1) {
      process.stderr.write(`round ${round} of ${options.rounds}\n`);
      const servers: BenchServer[] = [];
      try {
        for (const start of starts) servers.push(await start(servers));
        await warmUp(generator, servers, caseIds, options.loads[0]?.keys ?? 1);
        await measureRound(generator, round % 2 === 0 ? servers : servers.toReversed(), {
          caseIds,
          options,
          samples,
        });
        for (const server of servers) {
          peakMemory.set(server.name, Math.max(peakMemory.get(server.name) ?? 0, server.peakMemory()));
        }
      } finally {
        await Promise.all(servers.map((server) => server.close()));
      }
    }
  } finally {
    generator.disconnect();
  }
  return { samples, peakMemory };
}

async function warmUp(
  generator: ChildProcess,
  servers: readonly BenchServer[],
  caseIds: readonly CaseId[],
  keys: number,
): Promise<void> {
  for (const caseId of caseIds) {
    for (const server of servers) {
      if (canAnswer(server, caseId)) await measure(generator, server, { caseId, keys, ...WARM_UP });
    }
  }
}

interface Round {
  readonly caseIds: readonly CaseId[];
  readonly options: RunOptions;
  /** For what is measured */
  readonly samples: Samples;
}

async function measureRound(
  generator: ChildProcess,
  servers: readonly BenchServer[],
  { caseIds, options, samples }: Round,
): Promise<void> {
  const { seconds, loads, rpcConnections } = options;
  for (const { connections, keys } of loads) {
    for (const caseId of caseIds) {
      if (isRpc(caseId) && !rpcConnections.includes(connections)) continue;
      for (const server of servers) {
        if (!canAnswer(server, caseId)) continue;
        const sample = await measure(generator, server, { caseId, connections, keys, seconds });
        samples.add({ server: server.name, caseId, connections, keys }, sample);
      }
    }
  }
}

/** The servers written by hand, and with Hono, have no tRPC. */
function canAnswer({ isRestOnly }: BenchServer, caseId: CaseId): boolean {
  return !(isRestOnly && isRpc(caseId));
}

async function measure(
  generator: ChildProcess,
  server: BenchServer,
  { caseId, connections, seconds, keys: keyCount }: Load & Pick<LoadOrder, 'caseId' | 'seconds'>,
): Promise<Sample> {
  const before = server.cpuTimes();
  const { port, keys, onlyId } = server;
  const turns = keys[cases[caseId].key].slice(0, keyCount);
  generator.send({ caseId, connections, seconds, port, keys: turns, id: onlyId } satisfies LoadOrder);
  const [report] = (await once(generator, 'message')) as [LoadReport | LoadFailure];
  if ('error' in report) throw new Error(`${server.name}, ${caseId}: ${report.error}`);
  const { requests, loadCpu, p50, p99, p999, sent } = report;
  const after = server.cpuTimes();
  return {
    requestsPerSecond: requests / seconds,
    cpu: (after.server - before.server) / sent,
    postgresCpu: (after.postgres - before.postgres) / sent,
    redisCpu: (after.redis - before.redis) / sent,
    loadCpu,
    p50,
    p99,
    p999,
  };
}
