import { execFileSync } from 'node:child_process';
import type { TestProject } from 'vitest/node';
import setUpServers from '../../packages/platform/test/support/global-setup.js';

/** The folders with packages of their own, and the slow tests that need them */
const NEEDED_BY = {
  'scripts/checkers': /\/(?:generators|types)\.slow\.test\.ts$/,
  'examples/storefront': /\/storefront\/.*\.slow\.test\.ts$/,
};

/** Installs what the test files of this run need beside the packages of the root, then does what all tests need. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const chosen = project.vitest.state.getPaths();
  const folders = Object.entries(NEEDED_BY).filter(([, pattern]) =>
    chosen.some((file) => pattern.test(file)),
  );
  execFileSync(process.execPath, ['scripts/install.js', ...folders.map(([folder]) => folder)], {
    stdio: 'inherit',
  });
  return setUpServers(project);
}
