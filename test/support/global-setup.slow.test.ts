import { readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createTemporaryFolder, runNode } from '@animal-store/platform/testing';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { withAlias } from '../../packages/platform/test/support/missing-module.js';

/** What Vitest does at a signal, and what it calls before the tests */
const SCRIPT = `
  import setUp from './test/support/global-setup.ts';
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => setTimeout(() => process.exit(), 1));
  const vitest = { state: { getPaths: () => [] } };
  await setUp({ onTestsRerun() {}, vitest });
  console.log('PostgreSQL at ' + process.env.TEST_DATABASE_URL);
  console.log('prepared');
  setInterval(() => {}, 1_000);
`;

test.each([
  ['SIGTERM', 143],
  ['SIGINT', 130],
  ['SIGHUP', 129],
] as const)('a run of tests that %s ends leaves no PostgreSQL behind', async (signal, code) => {
  const args = [
    '--conditions=@animal-store/source',
    '--import',
    'tsx',
    ...withAlias('#operations-under-test', new URL('operations-under-test.ts', import.meta.url)),
    '--input-type=module',
    '--eval',
    SCRIPT,
  ];
  const run = runNode(args, {});
  const [, connectionString = ''] = await run.until(/PostgreSQL at (\S+)/);
  await run.until(/prepared/);
  run.child.kill(signal);
  expect(await run.ended).toBe(code);
  const client = new pg.Client({ connectionString });
  await expect(client.connect()).rejects.toThrow('ECONNREFUSED');
});

const RUN = `
  import { startVitest } from 'vitest/node';
  await startVitest('test', [], { watch: false, root: '.', config: 'test/support/interrupted.config.ts' });
`;

test('a run of tests that a signal ends leaves no service behind, nor any PostgreSQL that a test has started', async () => {
  const folder = await createTemporaryFolder();
  onTestFinished(() => rm(folder, { recursive: true }));
  const run = runNode(['--input-type=module', '--eval', RUN], { TMPDIR: folder });
  await run.until(/all are running/);
  const findServers = () =>
    readdirSync(folder, { recursive: true }).filter((name) => String(name).endsWith('/postmaster.pid'));
  // With that of the run
  await expect.poll(findServers).toHaveLength(3);
  run.child.kill('SIGTERM');
  expect(await run.ended).toBe(143);
  await expect.poll(findServers).toEqual([]);
});
