import { fileURLToPath } from 'node:url';
import { defaultServerConditions } from 'vite';
import { SlowFirst } from './slow-first.js';

interface Project {
  /** What `#operations-under-test` leads to: the operations of a store that tests of any store call */
  readonly operations: URL;
  readonly name: string;
  readonly include: readonly string[];
  readonly globalSetup: string;
}

/** A project does not take it from the command line by itself. */
const [, workers = '3'] = /--maxWorkers=(\d+)/.exec(process.argv.join(' ')) ?? [];

/** The settings of the tests that run a store. */
export function describeProject({ name, operations, include, globalSetup }: Project) {
  // The packages of this repository are tested from their sources.
  const conditions = ['@animal-store/source', ...defaultServerConditions];
  const alias = [{ find: '#operations-under-test', replacement: fileURLToPath(operations) }];
  const resolve = { alias, conditions };
  return {
    resolve: { alias },
    ssr: { resolve: { conditions } },
    // Where vitest runs the global setup.
    environments: { __vitest__: { resolve } },
    test: {
      name,
      // `npm test` leaves out *.slow.test.ts: CONTRIBUTING.md says what belongs there.
      include: [...include],
      globalSetup,
      // As `npm start` and the image set it. Without it, trpc-to-openapi writes a document for each operation of each service,
      // to check it, which was two fifths of what starting a service costs.
      env: { NODE_ENV: 'production' },
      // `npm test` runs more at once, because its files wait for most of their time. Browsers and servers do not.
      maxWorkers: Number(workers),
      // A busy machine needs longer, but a test that hangs has to end: these are bounds, and nothing waits for them.
      testTimeout: 120_000,
      hookTimeout: 120_000,
      expect: { poll: { timeout: 20_000, interval: 20 } },
      // Files share modules: loading them for each was a sixth of the time. A hook at the top of one is the first file's only.
      isolate: false,
    },
  };
}

/** The settings of a run of tests, whatever its projects. */
export const RUN = { sequence: { sequencer: SlowFirst } };
