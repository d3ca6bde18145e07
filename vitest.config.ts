import { defineConfig } from 'vitest/config';
import { describeProject, RUN } from './packages/platform/test/support/vitest-settings.js';

const animals = describeProject({
  name: 'animals',
  operations: new URL('./test/support/operations-under-test.ts', import.meta.url),
  include: ['test/**/*.test.ts', 'packages/!(platform)/test/**/*.test.ts', 'examples/*/test/**/*.test.ts'],
  globalSetup: 'test/support/global-setup.ts',
});

/** The platform has a store of its own for its tests, and the other tests have the animals. */
export default defineConfig({ test: { ...RUN, projects: [animals, 'packages/platform'] } });
