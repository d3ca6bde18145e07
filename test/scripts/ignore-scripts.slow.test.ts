import { stat, utimes } from 'node:fs/promises';
import { runCommand } from '@animal-store/platform/testing';
import { expect, test } from 'vitest';

test('with ignore-scripts=true a command does not run an old build', { timeout: 60_000 }, async () => {
  const now = new Date();
  await utimes('packages/platform/src/contract/deprecation.ts', now, now);
  const program = runCommand('npm', ['run', '-s', 'keys', '--', '--version'], {
    npm_config_ignore_scripts: 'true',
  });
  expect(await program.ended).toBe(0);
  expect(program.output()).toMatch(/^\d+\.\d+\.\d+\n$/);
  expect((await stat('dist/.compiled')).mtimeMs).toBeGreaterThanOrEqual(now.getTime());
});
