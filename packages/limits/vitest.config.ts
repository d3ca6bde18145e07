import { defineConfig } from 'vitest/config';

const conditions = ['@animal-store/source', 'module', 'node', 'development|production'];

/** For `npm test` in this folder, which needs a Redis and nothing of the repository around it but the installed packages. */
export default defineConfig({
  ssr: { resolve: { conditions } },
  test: {
    include: ['test/**/*.test.ts'],
    // Those of clusters and failovers run with all of the repository's.
    exclude: ['**/*.slow.test.ts'],
    testTimeout: 60_000,
    expect: { poll: { timeout: 20_000, interval: 20 } },
    maxWorkers: 2,
  },
});
