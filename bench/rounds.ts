import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { Case } from './case.js';
import { type CaseId, cases, counterparts, isRpc, type Load } from './cases.js';
import type { LoadFailure, LoadOrder, LoadReport } from './load.js';
import { withClient } from './postgres.js';
import { type Sample, Samples } from './samples.js';
import { type BenchServer, isExample } from './servers.js';

const WARM_UP_CONNECTIONS = 32;
/** A longer warm-up is several, because a case has animals for some seconds only */
const WARM_UP_STEP_SECONDS = 2;
/** So much memory for new objects that the load generator hardly ever collects garbage while it measures */
const LOAD_FLAGS = ['--max-semi-space-size=64'];

export interface RunOptions {
  readonly rounds: number;
  /** For each case and server at each load in a round */
  readonly seconds: number;
  /** For each case and server in a round, before any counts. A process takes half a minute to become as fast as it will be */
  readonly warmUpSeconds: number;
  /** In this order. The warm-up is made with the keys of the first. */
  readonly loads: readonly Load[];
  /** The numbers of connections at which tRPC cases are measured */
  readonly rpcConnections: readonly number[];
  /** The round trip to PostgreSQL and to Redis; 0 without a network */
  readonly networkMs: number;
}

export interface Measurement {
  readonly samples: Samples;
  /** The most memory that each server took in any round, in MB */
  readonly peakMemory: ReadonlyMap<string, number>;
}

/** What is measured on one server after the other. */
interface Step extends Load {
  readonly caseId: CaseId;
  readonly seconds: number;
}

/**
 * Measures each case on all servers one after the other, at each load and in several rounds. The order of the servers
 * is reversed from one round to the next, so that none always follows the same neighbour.
 *
 * Each round has processes of its own, which are warmed up first. Two processes of one program differ by up to a tenth
 * for as long as they run, so that rounds with the same ones would repeat the same chance.
 */
export async function measureRounds(
  starts: readonly (() => Promise<BenchServer>)[],
  caseIds: readonly CaseId[],
  { rounds, seconds, warmUpSeconds, loads, rpcConnections }: RunOptions,
): Promise<Measurement> {
  const warmUpLoad = { connections: WARM_UP_CONNECTIONS, keys: loads[0]?.keys ?? 1 };
  const parts = Math.ceil(warmUpSeconds / WARM_UP_STEP_SECONDS);
  const warmUp = caseIds.flatMap((caseId) =>
    Array<Step>(parts).fill({ caseId, ...warmUpLoad, seconds: warmUpSeconds / parts }),
  );
  const steps = loads.flatMap((load) =>
    caseIds
      .filter((caseId) => !isRpc(caseId) || rpcConnections.includes(load.connections))
      .map((caseId): Step => ({ caseId, ...load, seconds })),
  );
  const generator = startLoad();
  const samples = new Samples();
  const peakMemory = new Map<string, number>();
  try {
    for (let round = 1; round <= rounds; round += 1) {
      process.stderr.write(`round ${round} of ${rounds}\n`);
      const servers: BenchServer[] = [];
      try {
        for (const start of starts) servers.push(await start());
        for (const step of warmUp) await measureStep(generator, servers, step);
        const inOrder = round % 2 === 0 ? servers : servers.toReversed();
        for (const step of steps) await measureStep(generator, inOrder, step, samples);
        for (const { name, peakMemory: read } of servers) {
          peakMemory.set(name, Math.max(peakMemory.get(name) ?? 0, read()));
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

/** A process that sends what it is ordered to, until it is disconnected. */
export function startLoad(): ChildProcess {
  return fork(new URL('./load.ts', import.meta.url), { execArgv: [...process.execArgv, ...LOAD_FLAGS] });
}

export async function sendLoad(generator: ChildProcess, order: LoadOrder): Promise<LoadReport> {
  generator.send(order);
  const [report] = (await once(generator, 'message')) as [LoadReport | LoadFailure];
  if ('error' in report) throw new Error(report.error);
  return report;
}

async function measureStep(
  generator: ChildProcess,
  servers: readonly BenchServer[],
  step: Step,
  samples?: Samples,
): Promise<void> {
  for (const server of servers) {
    if (isExample(server.name) && step.caseId in counterparts) continue;
    const { prepare, undo }: Case = cases[step.caseId];
    if (prepare !== undefined) await withClient(server.databaseUrl, (client) => client.query(prepare));
    const sample = await measure(generator, server, step);
    if (undo !== undefined) await withClient(server.databaseUrl, (client) => client.query(undo));
    samples?.add({ server: server.name, ...step }, sample);
  }
}

async function measure(generator: ChildProcess, server: BenchServer, step: Step): Promise<Sample> {
  const before = server.cpuTimes();
  const { port, keys } = server;
  const turns = keys[cases[step.caseId].key].slice(0, step.keys);
  const order: LoadOrder = { ...step, caseIds: [step.caseId], ports: [port], keys: turns };
  const { requests, loadCpu, p50, p99, p999, sent } = await sendLoad(generator, order).catch((error) => {
    throw new Error(`${server.name}, ${step.caseId}: ${error.message}`);
  });
  const after = server.cpuTimes();
  return {
    requestsPerSecond: requests / step.seconds,
    cpu: (after.server - before.server) / sent,
    postgresCpu: (after.postgres - before.postgres) / sent,
    redisCpu: (after.redis - before.redis) / sent,
    loadCpu,
    p50,
    p99,
    p999,
  };
}
