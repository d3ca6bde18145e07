import { expect, onTestFinished, test } from 'vitest';
import { findRedis } from '../support/redis.js';
import { createTestDatabase } from '../support/test-service.js';
import { SEED } from './random.js';
import { runSoak } from './run-soak.js';

/** SOAK_REQUESTS=200000 makes it a soak of some minutes. */
const REQUESTS = Number(process.env.SOAK_REQUESTS || 4_000);
/** Many times what it takes, also on a busy machine */
const TIMEOUT_MS = 300_000 + 20 * REQUESTS;

const redis = await findRedis();

test.skipIf(redis === undefined)(
  'while clients and PostgreSQL break connections and SQL changes keys, every response is right, and what it acknowledges is stored once',
  { timeout: TIMEOUT_MS },
  async () => {
    onTestFinished(async () => redis?.close());
    process.stderr.write(`SOAK_SEED=${SEED}\n`);
    const { problems, phases, cancels, terminations, keyChanges, stored } = await runSoak({
      databaseUrl: await createTestDatabase(),
      redisUrl: redis?.url ?? '',
      requests: REQUESTS,
      connections: [1, 64, 256],
    });
    expect(problems).toEqual([]);
    const statuses = phases.flatMap(({ counts }) => [...counts.keys()]);
    expect(statuses).toEqual(expect.arrayContaining([0, 200, 201, 401, 429, 500]));
    expect(phases.map(({ name }) => name)).toContain('rejected rows');
    expect([cancels, terminations, keyChanges, stored]).not.toContain(0);
  },
);
