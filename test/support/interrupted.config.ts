import { defineConfig } from 'vitest/config';
import { describeProject } from '../../packages/platform/test/support/vitest-settings.js';

/** For the run of tests that global-setup.slow.test.ts ends. */
export default defineConfig(
  describeProject({
    name: 'interrupted',
    operations: new URL('./operations-under-test.ts', import.meta.url),
    include: ['test/support/interrupted-run.ts'],
    globalSetup: 'test/support/global-setup.ts',
  }),
);
