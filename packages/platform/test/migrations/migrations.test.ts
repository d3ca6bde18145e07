import { execute } from '@animal-store/platform/testing';
import pg from 'pg';
import { afterEach, expect, test } from 'vitest';
import { definition, TABLE } from '#operations-under-test';
import { type Database, openDatabase } from '../../src/connections/client.js';
import { applyMigrations } from '../../src/migrations/migration-runner.js';
import { checkMigrations, listPendingMigrations } from '../../src/migrations/migrations.js';
import { OperatorError } from '../../src/operator-errors/operator-error.js';
import { createMigrations } from '../support/migration-folder.js';
import { applyWithEngine, diagnose } from '../support/schema-engine.js';
import { createTestDatabase } from '../support/test-service.js';

const opened: Database[] = [];
afterEach(async () => {
  for (const database of opened.splice(0)) await database.close();
});

function open(url: string): Database {
  const database = openDatabase(url, () => {}, definition);
  opened.push(database);
  return database;
}

/** `npm run migrate`, and the start, readiness and the commands, which use one function. */
async function expectOneAnswer(url: string, message: RegExp | string) {
  await expect(applyMigrations(url, definition.root)).rejects.toThrow(message);
  await expect(checkMigrations(definition.root, open(url))).rejects.toThrow(message);
  await expect(applyMigrations(url, definition.root)).rejects.toBeInstanceOf(OperatorError);
}

/** What has to be the same, whoever applied a migration. */
const HISTORY = `
  SELECT migration_name, checksum, finished_at IS NOT NULL AS is_finished, logs IS NOT NULL AS has_logs, rolled_back_at,
    applied_steps_count, length(id) AS id_length
  FROM _prisma_migrations ORDER BY migration_name`;
const COLUMNS = `
  SELECT column_name, data_type, character_maximum_length, is_nullable, column_default
  FROM information_schema.columns WHERE table_name = '_prisma_migrations' ORDER BY ordinal_position`;

test('migrations are applied once, and a database that is behind is rejected with the command that updates it', async () => {
  const url = await createTestDatabase('template0');
  const behind = open(url);
  await expect(checkMigrations(definition.root, behind)).rejects.toThrow(
    /^The schema "public" of the database has no table _prisma_migrations: create the tables with: npm run migrate[^\n]*$/,
  );
  const pending = (await listPendingMigrations(definition.root, behind)).map(({ name }) => name);
  expect(await applyMigrations(url, definition.root)).toEqual(pending);
  expect(await applyMigrations(url, definition.root)).toEqual([]);
  await expect(checkMigrations(definition.root, behind)).resolves.toBeUndefined();
  await execute(url, `DELETE FROM _prisma_migrations WHERE migration_name = '${pending.at(-1)}'`);
  await expect(checkMigrations(definition.root, behind)).rejects.toThrow(
    `The database lacks 1 migration(s): ${pending.at(-1)}. Apply them with: npm run migrate`,
  );
});

test('a migration may take longer than the statement timeout of its role', async () => {
  const url = await createTestDatabase('template0');
  await execute(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET statement_timeout = '10ms'`);
  const { folder, write } = await createMigrations();
  await write('20260101000000_slow', 'SELECT pg_sleep(0.1);');
  expect(await applyMigrations(url, folder)).toEqual(['20260101000000_slow']);
});

test('a migration may hold functions, triggers and comments with semicolons, and is applied as a whole or not at all', async () => {
  const url = await createTestDatabase('template0');
  const { folder, write } = await createMigrations();
  const withFunction = `
    CREATE TABLE animals (name text, loud text); -- a comment; with a semicolon
    CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN NEW.loud := upper(NEW.name); RETURN NEW; END $$;
    CREATE TRIGGER animals_shout BEFORE INSERT ON animals FOR EACH ROW EXECUTE FUNCTION shout();`;
  await write('20260101000000_function', withFunction);
  expect(await applyMigrations(url, folder)).toEqual(['20260101000000_function']);
  expect(await execute(url, "INSERT INTO animals VALUES ('rex') RETURNING loud")).toEqual([{ loud: 'REX' }]);
  await write('20260101000001_half', 'CREATE TABLE half (id int); SELECT 1 / 0;');
  await expect(applyMigrations(url, folder)).rejects.toThrow(
    /20260101000001_half failed \(division by zero\)/,
  );
  expect(await execute(url, "SELECT to_regclass('half') AS half")).toEqual([{ half: null }]);
});

test('a migration that was edited after it was applied is rejected', async () => {
  const url = await createTestDatabase();
  await execute(url, `UPDATE _prisma_migrations SET checksum = repeat('0', 64)`);
  await expectOneAnswer(url, /^Migration \S+ was changed after it was applied.*delete DATA_DIR[^\n]*$/);
});

test('a migration that fails is reported on one line, with its name, the reason and what to do, and so is a next attempt', async () => {
  const url = await createTestDatabase();
  await execute(url, `DELETE FROM _prisma_migrations WHERE migration_name LIKE '%_api_key_usage'`);
  const failed = applyMigrations(url, definition.root);
  await expect(failed).rejects.toBeInstanceOf(OperatorError);
  await expect(failed).rejects.toThrow(
    /^Migration \d+_api_key_usage failed \(.* already exists\): remove the cause, restore the backup [^\n]*npm run migrate[^\n]*$/,
  );
  await expectOneAnswer(
    url,
    /^Migration \d+_api_key_usage failed earlier: remove the cause, restore the backup [^\n]*npm run migrate[^\n]*$/,
  );
});

test('a database that belongs to something else is rejected on one line', async () => {
  const url = await createTestDatabase('template0');
  await execute(url, `CREATE TABLE ${TABLE} (id integer)`);
  await expect(applyMigrations(url, definition.root)).rejects.toThrow(
    /^The migrations cannot be applied \(The schema "public" is not empty\.\): check that DATABASE_URL [^\n]*$/,
  );
});

test('migrations for a database that cannot be used are rejected with the reason, on one line', async () => {
  const url = new URL(await createTestDatabase('template0'));
  const attempt = async (changes: Partial<URL>) => {
    const changed = Object.assign(new URL(url), changes).href;
    const messages = await Promise.all(
      [applyMigrations(changed, definition.root), checkMigrations(definition.root, open(changed))].map(
        (promise) => promise.catch(String),
      ),
    );
    expect(messages[0]).toBe(messages[1]);
    return messages[0];
  };
  expect(await attempt({ port: '1' })).toMatch(
    /^Error: The database cannot be used \(connect ECONNREFUSED 127\.0\.0\.1:1\): check that it is running [^\n]*$/,
  );
  expect(await attempt({ password: 'wrong' })).toMatch(/^[^\n]*\(password authentication failed [^\n]*$/);
  expect(await attempt({ search: '?sslrootcert=/missing' })).toMatch(/^[^\n]*ENOENT[^\n]*$/);
  expect(await attempt({ search: '?sslmode=verify-full' })).toMatch(/^[^\n]*does not support SSL[^\n]*$/);
});

test("a baseline of Prisma's is no migration of ours: what is pending is applied", async () => {
  const url = await createTestDatabase();
  await execute(
    url,
    "INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at) VALUES ('x', 'x', '0_init', now())",
  );
  await checkMigrations(definition.root, open(url));
  expect(await applyMigrations(url, definition.root)).toEqual([]);
});

test('a database that is ahead is served, and one whose migration is being applied is behind, not broken', async () => {
  const url = await createTestDatabase();
  const insert = 'INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at)';
  await execute(url, `${insert} VALUES ('x', 'x', '99991231000000_later', now())`);
  await checkMigrations(definition.root, open(url));
  await execute(
    url,
    `UPDATE _prisma_migrations SET finished_at = NULL WHERE migration_name LIKE '%_api_key_usage'`,
  );
  await expect(checkMigrations(definition.root, open(url))).rejects.toThrow(
    /lacks 1 migration\(s\): \d+_api_key_usage\./,
  );
  // Under its lock nothing runs: the process that ran it is gone.
  await expect(applyMigrations(url, definition.root)).rejects.toThrow(/_api_key_usage failed earlier/);
});

test('line ends of Windows are no change of a migration: for the service, and for Prisma', async () => {
  const { folder, write } = await createMigrations();
  const sql = 'CREATE TABLE animals (\n  name text\n);\n';
  const [name, withReturns] = ['20260101000000_animals', sql.replaceAll('\n', '\r\n')];
  const cases = [
    [applyMigrations, sql, withReturns],
    [applyMigrations, withReturns, sql],
    [applyWithEngine, sql, withReturns],
    [applyWithEngine, withReturns, sql],
  ] as const;
  for (const [apply, before, after] of cases) {
    const url = await createTestDatabase('template0');
    await write(name, before);
    expect(await apply(url, folder)).toEqual([name]);
    await write(name, after);
    expect(await applyMigrations(url, folder)).toEqual([]);
    expect(await diagnose(url, folder)).toMatchObject({ editedMigrationNames: [], history: null });
  }
});

test("Prisma's engine and this service record the same, and go on from what the other has applied or left as failed", async () => {
  const { folder, write } = await createMigrations();
  await write('20260101000000_first', 'CREATE TABLE first (id int);');
  const [own, prismas] = [await createTestDatabase('template0'), await createTestDatabase('template0')];
  await applyMigrations(own, folder);
  await applyWithEngine(prismas, folder);
  expect(await execute(own, COLUMNS)).toEqual(await execute(prismas, COLUMNS));
  expect(await execute(own, HISTORY)).toEqual(await execute(prismas, HISTORY));
  await write('20260101000001_second', 'CREATE TABLE second (id int);');
  expect(await applyWithEngine(own, folder)).toEqual(['20260101000001_second']);
  expect(await applyMigrations(prismas, folder)).toEqual(['20260101000001_second']);
  await write('20260101000002_third', 'SELECT 1 / 0;');
  await expect(applyWithEngine(prismas, folder)).rejects.toThrow('division by zero');
  await expect(applyMigrations(own, folder)).rejects.toThrow('third failed (division by zero)');
  expect(await execute(own, HISTORY)).toEqual(await execute(prismas, HISTORY));
  await expect(applyMigrations(prismas, folder)).rejects.toThrow('third failed earlier');
  await expect(applyWithEngine(own, folder)).rejects.toThrow(/third.* failed/);
  expect(await diagnose(own, folder)).toMatchObject({ failedMigrationNames: ['20260101000002_third'] });
});

test('a migration that waits for another says for whom, goes on when that ends, and ends itself if it does not', async () => {
  const url = await createTestDatabase('template0');
  const other = new pg.Client({ connectionString: url, application_name: 'deploy 41' });
  await other.connect();
  await other.query('SELECT pg_advisory_lock(72707369)');
  const { rows } = await other.query('SELECT pg_backend_pid() AS pid');
  const holder = `pid ${rows[0].pid}, "deploy 41"`;
  const said: string[] = [];
  const onWaiting = (message: string) => void said.push(message);
  const failed = applyMigrations(url, definition.root, { onWaiting, noticeMs: 20, timeoutMs: 60 });
  await expect(failed).rejects.toThrow(
    new RegExp(`^Another migration has not ended within 0\\.06 s \\(${holder}\\): [^\n]* try again\\.$`),
  );
  await expect(failed).rejects.toMatchObject({ exitCode: 4 });
  const waited = [`waiting for another migration to end: ${holder}`];
  expect(said).toEqual(waited);
  const applied = applyMigrations(url, definition.root, { onWaiting, noticeMs: 20 });
  await expect.poll(() => said).toEqual([...waited, ...waited]);
  await other.end();
  expect((await applied).length).toBeGreaterThan(0);
});

/** A session that has written to a table and leaves its transaction open, and a migration that needs the table. */
async function holdTable(script: string) {
  const url = await createTestDatabase('template0');
  const { folder, write } = await createMigrations();
  await write('20260101000000_first', 'CREATE TABLE first (id int);');
  await applyMigrations(url, folder);
  const other = new pg.Client({ connectionString: url, application_name: 'report 7' });
  await other.connect();
  await other.query('BEGIN; INSERT INTO first VALUES (1)');
  await write('20260101000001_second', script);
  return { url, folder, other };
}

test('a migration waits only briefly for a table, says who holds it, leaves nothing, and can be repeated', async () => {
  const script = 'CREATE TABLE second (id int); ALTER TABLE first ADD COLUMN name text;';
  const { url, folder, other } = await holdTable(script);
  const before = await execute(url, HISTORY);
  const { rows } = await other.query('SELECT pg_backend_pid() AS pid');
  const failed = applyMigrations(url, folder, { onWaiting() {}, tableMs: 500 });
  const refusal = `Migration 20260101000001_second .*\\(pid ${rows[0].pid}, "report 7"\\).*: npm run migrate\\.`;
  await expect(failed).rejects.toThrow(new RegExp(`^${refusal}$`));
  await expect(failed).rejects.toMatchObject({ exitCode: 4 });
  expect(await execute(url, "SELECT to_regclass('second') AS second")).toEqual([{ second: null }]);
  expect(await execute(url, HISTORY)).toEqual(before);
  await other.end();
  expect(await applyMigrations(url, folder)).toEqual(['20260101000001_second']);
});

test.each([
  [
    'that sets a lock_timeout of its own',
    "SET LOCAL lock_timeout = '1h'; ALTER TABLE first ADD COLUMN name text;",
  ],
  ['that runs in no transaction', 'CREATE INDEX CONCURRENTLY first_id ON first (id);'],
])('a migration %s waits as long as it says', async (_kind, script) => {
  const { url, folder, other } = await holdTable(script);
  const applied = applyMigrations(url, folder, { onWaiting() {}, tableMs: 1 });
  const waitsForLong = `
    SELECT 1 FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND query_start < now() - interval '300 ms'`;
  const isWaiting = async () => (await execute(url, waitsForLong)).length;
  const early = applied.then((names) => expect.unreachable(`applied ${names}`));
  await Promise.race([early, expect.poll(isWaiting).toBe(1)]);
  await other.end();
  expect(await applied).toEqual(['20260101000001_second']);
});

test("Prisma's engine waits for whoever has the lock that this service takes", async () => {
  const { folder, write } = await createMigrations();
  await write('20260101000000_first', 'CREATE TABLE first (id int);');
  const url = await createTestDatabase('template0');
  const other = new pg.Client(url);
  await other.connect();
  await other.query('SELECT pg_advisory_lock(72707369)');
  const applied = applyWithEngine(url, folder);
  const waits = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 72707369 AND NOT granted";
  await expect.poll(async () => (await other.query(waits)).rowCount).toBe(1);
  await other.end();
  expect(await applied).toEqual(['20260101000000_first']);
});

test('migrations go to the schema of the URL, which is created, for the service and for Prisma', async () => {
  const { folder, write } = await createMigrations();
  await write('20260101000000_first', 'CREATE TABLE first (id int);');
  const url = new URL(await createTestDatabase('template0'));
  for (const schema of ['tenant', 'Ten"ant 2']) {
    url.searchParams.set('schema', schema);
    expect(await applyMigrations(url.href, folder)).toEqual(['20260101000000_first']);
    expect(await applyWithEngine(url.href, folder)).toEqual([]);
  }
  const tables = await execute(
    url.href,
    "SELECT schemaname FROM pg_tables WHERE tablename = 'first' ORDER BY schemaname",
  );
  expect(tables).toEqual([{ schemaname: 'Ten"ant 2' }, { schemaname: 'tenant' }]);
});

test('a migration whose process is killed in the middle leaves nothing, neither of its own nor on record, and is applied the next time', async () => {
  const url = await createTestDatabase('template0');
  const { folder, write } = await createMigrations();
  await write('20260101000000_first', 'CREATE TABLE first (id int);');
  await applyMigrations(url, folder);
  const before = await execute(url, HISTORY);
  await write('20260101000001_second', 'CREATE TABLE second (id int); SELECT FROM first -- a comment');
  const other = new pg.Client(url);
  await other.connect();
  await other.query('BEGIN; LOCK TABLE first');
  const killed = applyMigrations(url, folder);
  const kill = `
    SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  await Promise.all([
    expect(killed).rejects.toThrow(/second failed/),
    expect.poll(async () => (await execute(url, kill)).length).toBe(1),
  ]);
  await other.end();
  expect(await execute(url, "SELECT to_regclass('second') AS second")).toEqual([{ second: null }]);
  expect(await execute(url, HISTORY)).toEqual(before);
  expect(await applyMigrations(url, folder)).toEqual(['20260101000001_second']);
});

test('what a migration says that it has done reaches the operator once it is done', async () => {
  const url = await createTestDatabase('template0');
  const { folder, write } = await createMigrations();
  const notice = (count: number) => `DO $$ BEGIN RAISE NOTICE '% rows are gone', ${count}; END $$;`;
  await write('20260101000000_first', `DROP TABLE IF EXISTS first; ${notice(7)}`);
  await write('20260101000001_second', `${notice(8)} SELECT 1 / 0;`);
  const said: string[] = [];
  const options = { onWaiting() {}, onNotice: (message: string) => void said.push(message) };
  await expect(applyMigrations(url, folder, options)).rejects.toThrow('second failed (division by zero)');
  expect(said).toEqual(['7 rows are gone']);
});
