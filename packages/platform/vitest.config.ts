import { defineConfig } from 'vitest/config';
import { describeProject, RUN } from './test/support/vitest-settings.js';

const project = describeProject({
  name: 'platform',
  operations: new URL('./test/support/operations-under-test.ts', import.meta.url),
  include: ['test/**/*.test.ts'],
  globalSetup: 'test/support/global-setup.ts',
});

/** For `npx vitest run --root packages/platform` at the root of the repository. */
export default defineConfig({ ...project, test: { ...project.test, ...RUN } });
