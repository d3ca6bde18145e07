import { availableParallelism } from 'node:os';
import { createBackend } from '../backend.js';
import { type CaseId, cases } from '../cases.js';
import { THIS_CHECKOUT } from '../checkout.js';
import { startPostgres } from '../postgres.js';
import { measureRounds, type StartServer } from '../rounds.js';
import type { Cell, Samples } from '../samples.js';
import { startService } from '../servers.js';
import { median, printTable } from '../table.js';
import type { GrowthOptions } from './options.js';

const ONE = 'WORKERS=1';
const TWO = 'WORKERS=2';
const CASE_IDS: CaseId[] = ['list20', 'get', 'create'];
const CONNECTIONS = 32;
/** Two for the workers, one for the load, one for PostgreSQL and Redis */
const CORES_NEEDED = 4;

/** Requests per second with one and with two processes, on all cores. */
export async function growWorkers({ rounds = 3, seconds = 3 }: GrowthOptions): Promise<void> {
  const postgres = await startPostgres();
  const backend = await createBackend({
    postgres,
    name: 'workers',
    checkout: THIS_CHECKOUT,
    withRedis: true,
  });
  try {
    if (backend.redisUrl === undefined) {
      process.stdout.write('Not measured: several workers need Redis, and there is none here\n');
      return;
    }
    const starts: StartServer[] = [
      () => startService(ONE, backend, { workers: 1 }),
      () => startService(TWO, backend, { workers: 2 }),
    ];
    const options = { rounds, seconds, connections: [CONNECTIONS] };
    const { samples } = await measureRounds(starts, CASE_IDS, options);
    report(samples);
  } finally {
    await backend.close();
    await postgres.close();
  }
}

function report(samples: Samples): void {
  printTable(
    ['requests/s', ONE, TWO, 'ratio'],
    CASE_IDS.map((caseId) => {
      const one: Cell = { server: ONE, caseId, connections: CONNECTIONS };
      const two: Cell = { ...one, server: TWO };
      return [
        cases[caseId].name,
        Math.round(samples.median(one, 'requestsPerSecond')),
        Math.round(samples.median(two, 'requestsPerSecond')),
        median(samples.ratios(two, one, 'requestsPerSecond')).toFixed(2),
      ];
    }),
  );
  const cores = availableParallelism();
  if (cores >= CORES_NEEDED) return;
  process.stdout.write(
    `This machine has ${cores} cores, which the load, PostgreSQL and Redis need too: the gain of a second worker ` +
      `only shows on ${CORES_NEEDED} cores or more.\n\n`,
  );
}
