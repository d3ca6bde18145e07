import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { type CaseId, isRpc } from './cases.js';
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
  /** The loads, each a number of connections */
  readonly connections: readonly number[];
  /** Those of them that tRPC cases are measured at. Default: all */
  readonly rpcConnections?: readonly number[];
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
  const load = fork(new URL('./load.ts', import.meta.url), {
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
        await warmUp(load, servers, caseIds);
        await measureRound(load, round % 2 === 0 ? servers : servers.toReversed(), {
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
    load.disconnect();
  }
  return { samples, peakMemory };
}

async function warmUp(
  load: ChildProcess,
  servers: readonly BenchServer[],
  caseIds: readonly CaseId[],
): Promise<void> {
  for (const caseId of caseIds) {
    for (const server of servers) {
      if (canAnswer(server, caseId)) await measure(load, server, { caseId, ...WARM_UP });
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
  load: ChildProcess,
  servers: readonly BenchServer[],
  { caseIds, options, samples }: Round,
): Promise<void> {
  const { seconds, connections, rpcConnections = connections } = options;
  for (const count of connections) {
    for (const caseId of caseIds) {
      if (isRpc(caseId) && !rpcConnections.includes(count)) continue;
      for (const server of servers) {
        if (!canAnswer(server, caseId)) continue;
        const sample = await measure(load, server, { caseId, connections: count, seconds });
        samples.add({ server: server.name, caseId, connections: count }, sample);
      }
    }
  }
}

/** The servers written by hand, and with Hono, have no tRPC. */
function canAnswer({ isRestOnly }: BenchServer, caseId: CaseId): boolean {
  return !(isRestOnly && isRpc(caseId));
}

async function measure(
  load: ChildProcess,
  server: BenchServer,
  order: Pick<LoadOrder, 'caseId' | 'connections' | 'seconds'>,
): Promise<Sample> {
  const before = server.cpuTimes();
  const { port, keys, onlyId } = server;
  load.send({ ...order, port, keys, id: onlyId } satisfies LoadOrder);
  const [report] = (await once(load, 'message')) as [LoadReport | LoadFailure];
  if ('error' in report) throw new Error(`${server.name}, ${order.caseId}: ${report.error}`);
  const { requests, seconds, loadCpu, p50, p99, p999, sent } = report;
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
