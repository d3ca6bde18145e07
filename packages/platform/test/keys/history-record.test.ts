import { execute, readJson, untilListening } from '@animal-store/platform/testing';
import { expect, onTestFinished, test } from 'vitest';
import { createKeyHistoryStore } from '../../src/keys/history.js';
import { run, runInProcess, runKeys } from '../support/process.js';
import { setUpServiceProcesses } from '../support/service-processes.js';
import { createTestDatabase, startService } from '../support/test-service.js';

const processes = setUpServiceProcesses();

async function start() {
  const service = await startService();
  onTestFinished(() => service.close());
  const sql = (text: string) => execute<Record<string, unknown>>(service.databaseUrl, text);
  return { service, sql, history: createKeyHistoryStore(service.serviceDatabase) };
}

/** Runs a command of `keys` as the owner of the tables. */
const runAsOwner = (url: string, ...args: string[]) =>
  runInProcess(['keys', ...args], { DATABASE_URL: url }, { asOwner: true });

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
  expect(await runAsOwner(service.databaseUrl, ...before)).toEqual({
    code: 0,
    output: '2500 changes from before 2026-01-01 were deleted.\n',
  });
  expect(await applications()).toEqual(kept);
  expect(kept).toContain('first');
  expect(await readJson(await runAsOwner(service.databaseUrl, ...before, '--json'))).toEqual({ deleted: 0 });
});

test('a role that may not delete what is on record is told in one line who may', async () => {
  const { service, sql, history } = await start();
  await sql(`UPDATE api_key_history SET changed_at = '2001-01-01'`);
  const outcome = await runInProcess(['keys', 'history', '--delete-before', '2026-01-01'], {
    DATABASE_URL: service.databaseUrl,
  });
  expect(outcome).toEqual({
    code: 1,
    output: expect.stringMatching(
      /^The role of DATABASE_URL may not delete [^\n]*: name the owner of the tables in DATABASE_URL\.\n$/,
    ),
  });
  expect(await history.read({})).not.toEqual([]);
});

const GAPS: Readonly<Record<string, readonly [sql: string, names: string]>> = {
  'is missing': ['DROP TRIGGER api_keys_history ON api_keys', 'api_keys_history'],
  'is disabled': [
    'ALTER TABLE api_keys DISABLE TRIGGER api_keys_history_truncated',
    'api_keys_history_truncated',
  ],
  'leaves out what was whose': ['DROP TRIGGER api_keys_past_owners ON api_keys', 'api_keys_past_owners'],
  'does not fire for replication, as after pg_restore --disable-triggers': [
    'ALTER TABLE api_keys ENABLE TRIGGER USER',
    'api_keys_history and api_keys_history_truncated and api_keys_past_owners',
  ],
};

test.each(Object.entries(GAPS))(
  'a trigger of the record that %s is named at the start, in readiness and by commands, and migrate says what mends it',
  async (_what, [sql, names]) => {
    const url = await createTestDatabase();
    const triggers = () =>
      execute(
        url,
        `SELECT pg_get_triggerdef(oid) AS definition, tgenabled FROM pg_trigger
         WHERE tgrelid = 'api_keys'::regclass AND NOT tgisinternal ORDER BY tgname`,
      );
    const expected = await triggers();
    await execute(url, sql);
    const message = `Changes of keys are not all on record: the trigger ${names} of api_keys is missing, or not ENABLE ALWAYS`;
    const advised = `${message}: npm run migrate says what mends it.`;

    const service = processes.start({ DATABASE_URL: url, APP_ENV: 'staging' });
    const readiness = async () => {
      const response = await fetch(`${await untilListening(service)}/health/ready`);
      return [response.status, await response.json()];
    };
    const ready = { status: 'ok', database: 'ok', limits: 'memory' };
    expect(await readiness()).toEqual([200, { ...ready, warning: advised }]);
    const { code, output } = await runInProcess(['keys', 'list'], { DATABASE_URL: url });
    expect([code, output.split('\n')]).toEqual([0, expect.arrayContaining([advised])]);

    const migrate = run('cli', ['migrate'], { DATABASE_URL: url });
    expect(await migrate.ended).toBe(0);
    const [said, repair = ''] = migrate.output().split('To mend it, as the owner:\n\n');
    expect(said).toContain(message);
    await execute(url, repair);
    expect(await triggers()).toEqual(expected);
    await expect.poll(readiness).toEqual([200, ready]);
    expect(await runKeys({ DATABASE_URL: url }, 'list')).toEqual([]);
    const logged = service
      .output()
      .split('\n')
      .filter((line) => line.includes(message));
    expect(logged.map((line) => JSON.parse(line))).toMatchObject([{ level: 40, msg: advised }]);
  },
);
