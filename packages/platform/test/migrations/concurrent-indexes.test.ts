import { execute } from '@animal-store/platform/testing';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { applyMigrations } from '../../src/migrations/migration-runner.js';
import { findPending, readHistory, readMigrations } from '../../src/migrations/migrations.js';
import { createMigrations } from '../support/migration-folder.js';
import { applyWithEngine, diagnose } from '../support/schema-engine.js';
import { startTcpProxy } from '../support/tcp-proxy.js';
import { createTestDatabase } from '../support/test-service.js';

const INDEX = '20260101000001_index';

/** A database with one table, and a folder whose next migration is a script. */
async function prepare(script: string, setup = '') {
  const url = await createTestDatabase('template0');
  const { folder, write } = await createMigrations();
  await write('20260101000000_first', `CREATE TABLE first (id int, "Id" int); ${setup}`);
  await applyMigrations(url, folder);
  await write(INDEX, script);
  return { url, folder, write, apply: () => applyMigrations(url, folder) };
}

/** An invalid index, as a DBA's own attempt over doubles leaves it. */
async function leaveInvalid(url: string, name: string): Promise<void> {
  await execute(url, 'INSERT INTO first VALUES (1), (1)');
  const creating = execute(url, `CREATE UNIQUE INDEX CONCURRENTLY ${name} ON first (id)`);
  await expect(creating).rejects.toThrow('could not create unique index');
  await execute(url, 'DELETE FROM first');
}

/** A session that has written to the table, so that what is done concurrently waits for its end. */
async function holdTable(url: string): Promise<{ end(): Promise<void> }> {
  const other = new pg.Client(url);
  await other.connect();
  let ended: Promise<void> | undefined;
  const end = () => (ended ??= other.end());
  onTestFinished(end);
  await other.query('BEGIN; INSERT INTO first VALUES (1, 1)');
  return { end };
}

const WAITING = `
  SELECT pid FROM pg_stat_activity
  WHERE datname = current_database() AND query LIKE '%CONCURRENTLY%' AND wait_event_type = 'Lock'`;

/** Breaks the connection of a migration whose statement waits: PostgreSQL goes on with the statement, as after a SIGKILL. */
async function breakWhileWaiting(url: string, folder: string): Promise<void> {
  const { hostname, port } = new URL(url);
  const proxy = await startTcpProxy({ host: hostname, port: Number(port) });
  onTestFinished(() => proxy.close());
  const broken = applyMigrations(Object.assign(new URL(url), { port: `${proxy.port}` }).href, folder);
  // Nothing is half done but the index, so no backup has to be restored.
  const ended = expect(broken).rejects.toThrow(
    new RegExp(
      `^Migration ${INDEX} failed \\(.*\\): remove the cause, and apply it again with: npm run migrate\\.`,
    ),
  );
  await expect.poll(() => execute(url, WAITING)).toHaveLength(1);
  await proxy.cut();
  await ended;
}

const isRecorded = async (url: string) =>
  execute(
    url,
    `SELECT applied_steps_count AS steps, logs FROM _prisma_migrations
     WHERE migration_name = '${INDEX}' AND finished_at IS NOT NULL AND rolled_back_at IS NULL`,
  );

test('an index may be created concurrently, as the only statement of a migration, also while another process waits to migrate', async () => {
  const { url, folder } = await prepare('CREATE INDEX CONCURRENTLY first_id ON first (id);');
  const other = new pg.Client(url);
  await other.connect();
  await other.query('SELECT pg_advisory_lock(72707369)');
  const waiting: string[] = [];
  const onWaiting = (message: string) => void waiting.push(message);
  const applied = Promise.all(
    Array.from({ length: 3 }, () => applyMigrations(url, folder, { onWaiting, noticeMs: 20 })),
  );
  await expect.poll(() => waiting).toHaveLength(3);
  await other.end();
  expect((await applied).flat()).toEqual([INDEX]);
});

test.each([
  ['first_left', 'CREATE INDEX CONCURRENTLY IF NOT EXISTS First_Left ON first (id)'],
  ['first_left', 'create index concurrently if not exists FIRST_LEFT on public.first (id)'],
  ['first_left', '-- "other"\nCREATE INDEX /* x */ CONCURRENTLY IF NOT EXISTS "first_left"ON"first"(id)'],
  ['"First_Left"', 'CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS "First_Left" ON ONLY first (id)'],
  ['"a ""b"" c"', 'CREATE INDEX CONCURRENTLY IF NOT EXISTS "a ""b"" c" ON first (id)'],
  ['été', 'CREATE INDEX CONCURRENTLY IF NOT EXISTS été ON first (id)'],
])(
  'an invalid index %s is not taken for created, and is named with what removes it: %j',
  async (name, script) => {
    const { url, apply } = await prepare(script);
    await leaveInvalid(url, name);
    const [drop] = await execute<{ sql: string }>(
      url,
      "SELECT format('DROP INDEX CONCURRENTLY public.%I;', relname) AS sql FROM pg_class JOIN pg_index ON indexrelid = oid WHERE NOT indisvalid",
    );
    await expect(apply()).rejects.toThrow(`(an earlier attempt left an invalid index): remove the cause`);
    await expect(apply()).rejects.toThrow(drop?.sql);
    await execute(url, drop?.sql as string);
    expect(await apply()).toEqual([INDEX]);
  },
);

test.each([
  ['first_left', 'CREATE INDEX CONCURRENTLY IF NOT EXISTS first_left_too ON first (id)'],
  ['first_left', 'CREATE INDEX CONCURRENTLY IF NOT EXISTS "First_Left" ON first (id)'],
  ['"First_Left"', 'CREATE INDEX CONCURRENTLY IF NOT EXISTS First_Left ON first (id)'],
  ['"Id"', 'CREATE INDEX CONCURRENTLY IF NOT EXISTS first_id ON first ("Id") -- "Id"'],
  ['first_left', "CREATE INDEX CONCURRENTLY first_id ON first ((id::text || 'first_left'))"],
  ['first_left', 'CREATE INDEX CONCURRENTLY ON first (id)'],
])('an invalid index %s of somebody else is in the way of no other: %j', async (name, script) => {
  const { url, apply } = await prepare(script);
  await leaveInvalid(url, name);
  expect(await apply()).toEqual([INDEX]);
});

test('a unique index over doubles fails with the name of the index to drop, after which the same command works', async () => {
  const script = 'CREATE UNIQUE INDEX CONCURRENTLY "First" ON first (id); -- once';
  const { url, folder, apply } = await prepare(script, 'INSERT INTO first VALUES (1), (1);');
  const drop = 'DROP INDEX CONCURRENTLY public."First";';
  await expect(apply()).rejects.toThrow(
    new RegExp(`^Migration ${INDEX} failed \\(could not create unique index "First"\\): .*${drop}[^\\n]*$`),
  );
  await expect(apply()).rejects.toThrow(
    new RegExp(`^Migration ${INDEX} was not completed: .*${drop}[^\\n]*$`),
  );
  await execute(url, 'DELETE FROM first');
  await execute(url, drop);
  expect(await apply()).toEqual([INDEX]);
  expect(await diagnose(url, folder)).toMatchObject({ failedMigrationNames: [], history: null });
  expect(await applyWithEngine(url, folder)).toEqual([]);
});

test('after a kill the next run waits until PostgreSQL has built the index, and records it as applied, for Prisma too', async () => {
  const { url, folder } = await prepare('CREATE INDEX CONCURRENTLY first_id ON first (id);');
  const other = await holdTable(url);
  await breakWhileWaiting(url, folder);
  const waiting: string[] = [];
  const onWaiting = (message: string) => void waiting.push(message);
  const applied = applyMigrations(url, folder, { onWaiting, noticeMs: 20 });
  await expect
    .poll(() => waiting)
    .toEqual([expect.stringMatching(/^waiting for another migration to end: pid /)]);
  await other.end();
  expect(await applied).toEqual([INDEX]);
  expect(await isRecorded(url)).toEqual([{ steps: 1, logs: null }]);
  expect(await diagnose(url, folder)).toMatchObject({ failedMigrationNames: [], history: null });
  expect(await applyWithEngine(url, folder)).toEqual([]);
});

test('after a kill that left the index invalid the next run names its DROP, and works once that is done', async () => {
  const { url, folder, apply } = await prepare('CREATE INDEX CONCURRENTLY first_id ON first (id);');
  const other = await holdTable(url);
  await breakWhileWaiting(url, folder);
  await execute(url, `SELECT pg_terminate_backend(pid, 2000) FROM (${WAITING}) AS building`);
  await other.end();
  const drop = 'DROP INDEX CONCURRENTLY public.first_id;';
  for (let times = 0; times < 2; times += 1) await expect(apply()).rejects.toThrow(drop);
  await execute(url, drop);
  expect(await apply()).toEqual([INDEX]);
  expect(await isRecorded(url)).toEqual([{ steps: 1, logs: null }]);
});

test('after a kill while an index is dropped the next run drops it, or records that it is gone', async () => {
  for (const isEnded of [true, false]) {
    const script = 'DROP INDEX CONCURRENTLY public.first_id;';
    const { url, folder, apply } = await prepare(script, 'CREATE INDEX first_id ON first (id);');
    const other = await holdTable(url);
    await breakWhileWaiting(url, folder);
    if (isEnded) await execute(url, `SELECT pg_terminate_backend(pid, 2000) FROM (${WAITING}) AS dropping`);
    await other.end();
    expect(await apply()).toEqual([INDEX]);
    expect(await execute(url, "SELECT to_regclass('first_id') AS found")).toEqual([{ found: null }]);
  }
});

test('to the start and to readiness an index that could not be created is pending, and no reason to restore a backup', async () => {
  const script = 'CREATE UNIQUE INDEX CONCURRENTLY first_id ON first (id);';
  const { url, folder, apply } = await prepare(script, 'INSERT INTO first VALUES (1), (1);');
  await expect(apply()).rejects.toThrow('could not create unique index');
  const client = new pg.Client(url);
  await client.connect();
  onTestFinished(() => client.end());
  const recorded = (await readHistory({ pool: client, schema: 'public' })) ?? expect.unreachable();
  const pending = findPending(recorded, await readMigrations(folder));
  expect(pending.map(({ name }) => name)).toEqual([INDEX]);
});

test('an index migration whose file was changed after it had failed is left to the operator', async () => {
  const { url, write, apply } = await prepare('CREATE INDEX CONCURRENTLY first_id ON first (missing);');
  await expect(apply()).rejects.toThrow(`${INDEX} failed (column "missing" does not exist)`);
  await write(INDEX, 'CREATE INDEX CONCURRENTLY first_id ON first (id);');
  await expect(apply()).rejects.toThrow(`${INDEX} failed earlier`);
  await execute(url, 'DELETE FROM _prisma_migrations WHERE finished_at IS NULL');
  expect(await apply()).toEqual([INDEX]);
});
