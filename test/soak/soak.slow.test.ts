import { rm } from 'node:fs/promises';
import { expect, onTestFinished, test } from 'vitest';
import { runSoak } from '../../bench/soak/run-soak.js';
import { findRedis } from '../support/redis.js';
import { createTemporaryFolder } from '../support/temporary-folder.js';
import { createTestDatabase } from '../support/test-service.js';

const redis = await findRedis();

test.skipIf(redis === undefined)(
  'while clients and PostgreSQL break connections, every response is right, and what it acknowledges is stored once',
  { timeout: 90_000 },
  async () => {
    const folder = await createTemporaryFolder();
    onTestFinished(async () => {
      await rm(folder, { recursive: true });
      await redis?.close();
    });
    const { problems, phases, cancels, terminations, stored } = await runSoak({
      databaseUrl: await createTestDatabase(),
      redisUrl: redis?.url ?? '',
      folder,
      requests: 4_000,
      connections: [1, 64, 256],
    });
    expect(problems).toEqual([]);
    const statuses = phases.flatMap(({ counts }) => [...counts.keys()]);
    expect(statuses).toEqual(expect.arrayContaining([0, 200, 201, 429, 500]));
    expect(phases.map(({ name }) => name)).toContain('rejected rows');
    expect([cancels, terminations, stored]).not.toContain(0);
  },
);
