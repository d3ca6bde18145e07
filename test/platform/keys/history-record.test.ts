import { expect, onTestFinished, test } from 'vitest';
import { createKeyHistoryStore } from '../../../src/platform/keys/history-store.js';
import { execute } from '../../support/execute.js';
import { readJson, run, runKeys, runNode, untilListening } from '../../support/process.js';
import { setUpServiceProcesses } from '../../support/service-processes.js';
import { createTestDatabase, startService } from '../../support/test-service.js';

const processes = setUpServiceProcesses();

async function start() {
  const service = await startService();
  onTestFinished(() => service.close());
  const sql = (text: string) => execute<Record<string, unknown>>(service.databaseUrl, text);
  return { service, sql, history: createKeyHistoryStore(service.serviceDatabase) };
}

/** Runs a command of `keys` as the owner of the tables. */
const runAsOwner = (url: string, ...args: string[]) =>
  runNode(['dist/cli.js', 'keys', ...args], { DATABASE_URL: url });

test("the service's role adds to the history, and neither changes it nor deletes from it, however old", async () => {
  const { service, sql } = await start();
  await sql(`UPDATE api_key_history SET changed_at = '2001-01-01'`);
  const { pool } = service.serviceDatabase;
  for (const change of [
    `UPDATE api_key_history SET new_value = 'x'`,
    'DELETE FROM api_key_history',
    'TRUNCATE api_key_history',
  ])
    await expect(pool.query(change), change).rejects.toThrow('permission denied');
});

test('the owner deletes what is on record from before a day, however much it is, and is told how much', async () => {
  const { service, sql, history } = await start();
  await sql(`
    INSERT INTO api_key_history (api_key_id, changed_at, session_role, active_role, application_name)
    SELECT gen_random_uuid(), day, 'x', 'x', 'old' FROM generate_series(1, 2500) AS n, (SELECT '2025-12-31T23:59:59.999Z'::timestamptz AS day) AS last
    UNION ALL SELECT gen_random_uuid(), '2026-01-01T00:00:00Z', 'x', 'x', 'first'`);
  const applications = async () => (await history.read({})).map(({ applicationName }) => applicationName);
  const kept = (await applications()).filter((name) => name !== 'old');
  const before = ['history', '--delete-before', '2026-01-01'];
  const program = runAsOwner(service.databaseUrl, ...before);
  expect([await program.ended, program.output()]).toEqual([
    0,
    '2500 changes from before 2026-01-01 were deleted.\n',
  ]);
  expect(await applications()).toEqual(kept);
  expect(kept).toContain('first');
  expect(await readJson(runAsOwner(service.databaseUrl, ...before, '--json'))).toEqual({ deleted: 0 });
});

test('a role that may not delete what is on record is told in one line who may', async () => {
  const { service, sql, history } = await start();
  await sql(`UPDATE api_key_history SET changed_at = '2001-01-01'`);
  const program = run('cli', ['keys', 'history', '--delete-before', '2026-01-01'], {
    DATABASE_URL: service.databaseUrl,
  });
  expect([await program.ended, program.output()]).toEqual([
    1,
    expect.stringMatching(
      /^The role of DATABASE_URL may not delete [^\n]*: name the owner of the tables in DATABASE_URL\.\n$/,
    ),
  ]);
  expect(await history.read({})).not.toEqual([]);
});
