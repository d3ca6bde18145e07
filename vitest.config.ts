import { defaultServerConditions } from 'vite';
import { defineConfig } from 'vitest/config';
import { SlowFirst } from './test/support/slow-first.js';

// The packages of this repository are tested from their sources.
const resolve = { conditions: ['@animal-store/source', ...defaultServerConditions] };

export default defineConfig({
  ssr: { resolve },
  // Where vitest runs the global setup.
  environments: { __vitest__: { resolve } },
  test: {
    // `npm test` leaves out *.slow.test.ts: CONTRIBUTING.md says what belongs there.
    include: ['test/**/*.test.ts', 'packages/*/test/**/*.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    // As `npm start` and the image set it. Without it, trpc-to-openapi writes a document for each operation of each service, to
    // check it, which was two fifths of what starting a service costs.
    env: { NODE_ENV: 'production' },
    // A busy machine needs longer, but a test that hangs has to end: these are bounds, and nothing waits for them.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 20_000, interval: 20 } },
    // `npm test` runs more at once, because its files wait for most of their time. Browsers and servers do not.
    maxWorkers: 3,
    sequence: { sequencer: SlowFirst },
    // Files share modules: loading them for each was a sixth of the time. A hook at the top of one is the first file's only.
    isolate: false,
  },
});
