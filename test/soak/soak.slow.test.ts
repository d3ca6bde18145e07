import { findRedis } from '@animal-store/limits/testing';
import { expect, onTestFinished, test } from 'vitest';
import { errorOf } from '../../packages/platform/test/support/error-table.js';
import { PostgresServer } from '../../packages/platform/test/support/postgres-server.js';
import { OPERATIONS, successStatus } from './operations.js';
import type { PhaseReport } from './phases.js';
import { SEED } from './random.js';
import { runSoak } from './run-soak.js';

/** SOAK_REQUESTS=200000 makes it a soak of some minutes. */
const REQUESTS = Number(process.env.SOAK_REQUESTS || 4_000);
/** Many times what it takes, also on a busy machine */
const TIMEOUT_MS = 300_000 + 20 * REQUESTS;

const redis = await findRedis();

test.skipIf(redis === undefined)(
  'while clients and PostgreSQL break connections, rows and commits wait and SQL changes keys, every response of every operation is right, and what it acknowledges is stored once',
  { timeout: TIMEOUT_MS },
  async ({ annotate }) => {
    onTestFinished(async () => redis?.close());
    process.stderr.write(`SOAK_SEED=${SEED}\n`);
    const server = await PostgresServer.start({ fsync: 'off' });
    onTestFinished(() => server.close());
    const { problems, phases, faults, ...audit } = await runSoak({
      server,
      redisUrl: redis?.url ?? '',
      requests: REQUESTS,
      // On few of them, orders wait for each other, and on many for a connection to PostgreSQL.
      connections: [1, 16, 64, 256],
    });
    const outcomes = addUp(phases);
    const { stored, unacknowledged, orders, unacknowledgedOrders } = audit;
    const counts = { ...faults, stored, unacknowledged, orders, unacknowledgedOrders };
    await annotate(JSON.stringify({ ...outcomes, ...counts }));
    expect(problems).toEqual([]);
    const statuses = phases.flatMap((phase) => [...phase.counts.keys()]);
    expect(statuses).toEqual(expect.arrayContaining([0, 200, 201, 204, 401, 409, 429, 500]));
    expect(phases.map(({ name }) => name)).toContain('rejected rows');
    expect([...Object.values(faults), stored, orders]).not.toContain(0);
    expect(Object.keys(outcomes)).toEqual(expect.arrayContaining(listExpectedOutcomes()));
  },
);

/** What came of the calls, by operation and status, in the order of their names */
function addUp(phases: readonly PhaseReport[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const [outcome, count] of phases.flatMap(({ outcomes }) => [...outcomes]).toSorted())
    sums[outcome] = (sums[outcome] ?? 0) + count;
  return sums;
}

/**
 * The success and the declared errors of every operation of the service. One that is missing needs a call in this folder, and
 * a share of the mix.
 */
function listExpectedOutcomes(): string[] {
  return [...OPERATIONS.values()].flatMap((operation) => [
    `${operation.name} ${successStatus(operation)}`,
    ...(operation.errors ?? []).map((code) => `${operation.name} ${errorOf(code).status} ${code}`),
  ]);
}
