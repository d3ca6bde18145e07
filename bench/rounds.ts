import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { type CaseId, isRpc } from './cases.js';
import type { LoadFailure, LoadOrder, LoadReport } from './load.js';
import { type Sample, Samples } from './samples.js';
import type { BenchServer } from './servers.js';

const WARM_UP = { connections: 32, seconds: 1 };
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

/**
 * Measures each case on all servers one after the other, at each load and in several rounds. The order of the servers
 * is reversed from one round to the next, so that none always follows the same neighbour. A round before the first
 * warms up.
 */
export async function measureRounds(
  servers: readonly BenchServer[],
  caseIds: readonly CaseId[],
  { rounds, seconds, connections, rpcConnections = connections }: RunOptions,
): Promise<Samples> {
  const load = fork(new URL('./load.ts', import.meta.url), {
    execArgv: [...process.execArgv, ...LOAD_FLAGS],
  });
  const samples = new Samples();
  try {
    process.stderr.write('warming up\n');
    for (const caseId of caseIds) {
      for (const server of servers) {
        if (canAnswer(server, caseId))
          await measure(load, server, { caseId, ...WARM_UP, seconds: Math.min(WARM_UP.seconds, seconds) });
      }
    }
    for (let round = 1; round <= rounds; round += 1) {
      process.stderr.write(`round ${round} of ${rounds}\n`);
      const ordered = round % 2 === 0 ? servers : servers.toReversed();
      for (const count of connections) {
        for (const caseId of caseIds) {
          if (isRpc(caseId) && !rpcConnections.includes(count)) continue;
          for (const server of ordered) {
            if (!canAnswer(server, caseId)) continue;
            const sample = await measure(load, server, { caseId, connections: count, seconds });
            samples.add({ server: server.name, caseId, connections: count }, sample);
          }
        }
      }
    }
  } finally {
    load.disconnect();
  }
  return samples;
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
