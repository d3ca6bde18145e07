import { defaultServerConditions } from 'vite';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  // Tests run the workspace packages from source, not from their last build.
  ssr: { resolve: { conditions: ['source', ...defaultServerConditions] } },
  test: {
    // Files named *.slow.test.ts need a browser, a second PostgreSQL, or waiting; `npm run test:quick` skips them.
    include: ['test/**/*.test.ts', 'packages/*/test/**/*.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    testTimeout: 30_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
  },
});
