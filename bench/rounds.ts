import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { type CaseId, cases } from './cases.js';
import type { LoadFailure, LoadOrder, LoadReport } from './load.js';
import type { BenchServer } from './servers.js';
import { median } from './table.js';

const WARM_UP_SECONDS = 1.5;

export interface RoundOptions {
  readonly rounds: number;
  /** For each case and server in a round */
  readonly seconds: number;
  readonly connections: number;
}

/** One case on one server in one round. */
export interface Sample {
  readonly requestsPerSecond: number;
  /** Of the server, in microseconds per request */
  readonly cpu: number;
  /** Latencies in milliseconds */
  readonly p50: number;
  readonly p99: number;
}
type Figure = keyof Sample;

/** The samples of a run: for each server and case one per round, in the order of the rounds. */
export class Samples {
  readonly #samples = new Map<string, Sample[]>();

  add(server: string, caseId: CaseId, sample: Sample): void {
    const samples = this.#find(server, caseId);
    samples.push(sample);
    this.#samples.set(`${server} ${caseId}`, samples);
  }

  has(server: string, caseId: CaseId): boolean {
    return this.#find(server, caseId).length > 0;
  }

  median(server: string, caseId: CaseId, figure: Figure): number {
    return median(this.#find(server, caseId).map((sample) => sample[figure]));
  }

  /**
   * A server's figure divided by another's, once per round. What slows the machine for a while slows both servers of a
   * round, so the median of these ratios is much steadier than the ratio of two medians.
   */
  ratios(server: string, other: string, caseId: CaseId, figure: Figure, otherCase = caseId): number[] {
    const others = this.#find(other, otherCase);
    return this.#find(server, caseId).map(
      (sample, round) => sample[figure] / (others[round]?.[figure] ?? Number.NaN),
    );
  }

  #find(server: string, caseId: CaseId): Sample[] {
    return this.#samples.get(`${server} ${caseId}`) ?? [];
  }
}

/**
 * Measures each case on all servers one after the other, in several rounds. The order of the servers is reversed from
 * one round to the next, so that none always follows the same neighbour. A round before the first warms up.
 */
export async function measureRounds(
  servers: readonly BenchServer[],
  caseIds: readonly CaseId[],
  { rounds, seconds, connections }: RoundOptions,
): Promise<Samples> {
  const load = fork(new URL('./load.ts', import.meta.url));
  const samples = new Samples();
  try {
    for (let round = 0; round <= rounds; round += 1) {
      const isWarmUp = round === 0;
      process.stderr.write(isWarmUp ? 'warming up\n' : `round ${round} of ${rounds}\n`);
      for (const caseId of caseIds) {
        for (const server of round % 2 === 0 ? servers : servers.toReversed()) {
          if (!canAnswer(server, caseId)) continue;
          const order = { caseId, connections, seconds: isWarmUp ? WARM_UP_SECONDS : seconds };
          const sample = await measure(load, server, order);
          if (!isWarmUp) samples.add(server.name, caseId, sample);
        }
      }
    }
  } finally {
    load.disconnect();
  }
  return samples;
}

/** The baseline has no tRPC. */
function canAnswer(server: BenchServer, caseId: CaseId): boolean {
  return server.name !== 'baseline' || !cases[caseId].path(1).startsWith('/trpc');
}

async function measure(
  load: ChildProcess,
  server: BenchServer,
  order: Pick<LoadOrder, 'caseId' | 'connections' | 'seconds'>,
): Promise<Sample> {
  const cpuBefore = server.cpuMicroseconds();
  load.send({ ...order, port: server.port, keys: server.keys } satisfies LoadOrder);
  const [report] = (await once(load, 'message')) as [LoadReport | LoadFailure];
  if ('error' in report) throw new Error(`${server.name}: ${report.error}`);
  const { requests, seconds, p50, p99 } = report;
  const cpu = (server.cpuMicroseconds() - cpuBefore) / requests;
  return { requestsPerSecond: requests / seconds, cpu, p50, p99 };
}
