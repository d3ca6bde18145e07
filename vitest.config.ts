import { defaultServerConditions } from 'vite';
import { defineConfig } from 'vitest/config';

// The packages of this repository are tested from their sources.
const resolve = { conditions: ['@animal-store/source', ...defaultServerConditions] };

export default defineConfig({
  ssr: { resolve },
  // Where vitest runs the global setup.
  environments: { __vitest__: { resolve } },
  test: {
    // Files named *.slow.test.ts need a browser, a second PostgreSQL, or waiting; `npm run test:quick` skips them.
    include: ['test/**/*.test.ts', 'packages/*/test/**/*.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    testTimeout: 30_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
  },
});
