import { createTemporaryFolder } from '@animal-store/platform/testing';
import { test } from 'vitest';
import { PostgresServer } from '../../packages/platform/test/support/postgres-server.js';
import { untilReady } from '../../packages/platform/test/support/service-processes.js';
import { run } from './programs.js';

/** What runs when global-setup.slow.test.ts ends a run of tests: it would go on until it times out. */
test('a service with its PostgreSQL, and a PostgreSQL of the test', async () => {
  await untilReady(run('main', [], { DATA_DIR: await createTemporaryFolder(), PORT: '0' }));
  await PostgresServer.start();
  process.stdout.write('all are running\n');
  await new Promise(() => {});
});
