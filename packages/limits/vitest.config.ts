import { defineConfig } from 'vitest/config';

const conditions = ['@animal-store/source', 'module', 'node', 'development|production'];

/** For `npm test` in this folder, which needs a Redis and only the installed packages of the repository around it. */
export default defineConfig({
  ssr: { resolve: { conditions } },
  test: {
    include: ['test/**/*.test.ts'],
    // Tests of clusters and failovers run with all tests of the repository.
    exclude: ['**/*.slow.test.ts'],
    testTimeout: 60_000,
    expect: { poll: { timeout: 20_000, interval: 20 } },
    maxWorkers: 2,
  },
});
