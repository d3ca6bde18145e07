import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { OperatorError } from '../../../src/platform/errors/operator-error.js';
import { applyMigrations } from '../../../src/platform/migrations/migration-runner.js';
import { PRISMA_FOLDER, readMigrations } from '../../../src/platform/migrations/migrations.js';
import { draftMigration, findDrift } from '../../../src/platform/migrations/schema-difference.js';
import { runInProcess } from '../../support/command.js';
import { execute } from '../../support/execute.js';
import { withoutModule } from '../../support/missing-module.js';
import { run, runNode } from '../../support/process.js';
import { asService } from '../../support/service-role.js';
import { createTemporaryFolder } from '../../support/temporary-folder.js';
import { createTestDatabase } from '../../support/test-service.js';

/** A copy of prisma/, and what adds a model to its schema. */
async function copyPrisma() {
  const folder = await createTemporaryFolder();
  onTestFinished(() => rm(folder, { recursive: true }));
  await cp(PRISMA_FOLDER, folder, { recursive: true });
  const path = join(folder, 'schema.prisma');
  const addModel = async (model: string) => writeFile(path, (await readFile(path, 'utf8')) + model);
  return { folder, addModel, migrations: join(folder, 'migrations') };
}

const BOATS = `
  model Boat {
    id   BigInt @id @default(autoincrement())
    name String
    @@index([name])
    @@map("boats")
  }`;
const PIERS = `
  model Pier {
    id BigInt @id
    @@map("piers")
  }`;

const DRAFT_DATABASES = "SELECT datname FROM pg_database WHERE datname LIKE 'migrations\\_%'";

test('a draft has the SQL for what schema.prisma has and the migrations have not, and a second one does not repeat it', async () => {
  const url = await createTestDatabase();
  const { folder, addModel, migrations } = await copyPrisma();
  const last = (await readMigrations(migrations)).at(-1)?.name as string;
  await addModel(BOATS);
  const first = (await draftMigration(url, 'boats', folder)) as string;
  const sql = await readFile(first, 'utf8');
  expect(sql).toMatch(
    /CREATE TABLE "boats" \([^;]*"name" TEXT NOT NULL[^;]*;[^;]*CREATE INDEX "boats_name_idx"/,
  );
  expect(sql.replaceAll(/^--.*$/gm, '').split(';')).toHaveLength(3);
  await addModel(PIERS);
  const second = (await draftMigration(url, 'piers', folder)) as string;
  expect(await readFile(second, 'utf8')).toMatch(/^(?!.*boats).*CREATE TABLE "piers"/s);
  const names = [first, second].map((path) => basename(dirname(path)));
  expect(names).toEqual([expect.stringMatching(/^\d{14}_boats$/), expect.stringMatching(/^\d{14}_piers$/)]);
  expect([last, ...names].sort()).toEqual([last, ...names]);
  expect(await applyMigrations(url, migrations)).toEqual(names);
  expect(await findDrift(url, folder)).toBeUndefined();
  expect(await execute(url, DRAFT_DATABASES)).toEqual([]);
});

test('a draft begins with what Prisma cannot express: ids, checks, turns and grants', async () => {
  const { folder, addModel } = await copyPrisma();
  await addModel(BOATS);
  const path = (await draftMigration(await createTestDatabase(), 'boats', folder)) as string;
  const lines = (await readFile(path, 'utf8')).split('\n');
  const head = lines
    .slice(
      0,
      lines.findIndex((line) => !line.startsWith('--')),
    )
    .join('\n');
  for (const part of ['GENERATED ALWAYS AS IDENTITY', 'CHECK', '"insert_turns"', 'src/identity.ts'])
    expect(head).toContain(part);
});

test('nothing is written where schema.prisma and the migrations agree, whatever else the database has', async () => {
  const url = await createTestDatabase();
  await execute(url, 'CREATE TABLE boats (id bigint PRIMARY KEY)');
  const { folder, migrations } = await copyPrisma();
  const before = await readMigrations(migrations);
  expect(await draftMigration(url, 'nothing', folder)).toBeUndefined();
  expect(await readMigrations(migrations)).toEqual(before);
});

test('a draft with a role that may create no database fails on one line that says what to do', async () => {
  const { folder } = await copyPrisma();
  const attempt = draftMigration(asService(await createTestDatabase()), 'new', folder);
  await expect(attempt).rejects.toBeInstanceOf(OperatorError);
  await expect(attempt).rejects.toThrow(/^A draft needs a database .*permission denied.*DATABASE_URL[^\n]*$/);
});

test.each(['public', 'own'])(
  'a migrated database in the schema %s has no drift, and each table, column, type and index that differs is named',
  async (schema) => {
    const target = new URL(await createTestDatabase('template0'));
    target.searchParams.set('schema', schema);
    const url = target.href;
    await applyMigrations(url);
    expect(await findDrift(url)).toBeUndefined();
    await execute(
      url,
      `SET search_path = ${schema};
      CREATE TABLE boats (id bigint PRIMARY KEY);
      ALTER TABLE api_keys ADD COLUMN colour text;
      ALTER TABLE api_keys DROP COLUMN owner CASCADE;
      ALTER TABLE idempotent_creates ALTER COLUMN batch_index TYPE integer;
      DROP INDEX api_key_usage_day_idx;
      ALTER TYPE plan RENAME VALUE 'pro' TO 'professional'`,
    );
    const drift = await findDrift(url);
    for (const name of ['boats', 'colour', 'owner', 'batch_index', '(day)', 'professional'])
      expect(drift).toContain(name);
  },
);

test('npm run migrate -- --check says where the database differs, and exits with 1 only then', async () => {
  const url = await createTestDatabase();
  const agreeing = run('cli', ['migrate', '--check'], { DATABASE_URL: url });
  expect([await agreeing.ended, agreeing.output()]).toEqual([0, expect.stringContaining('agrees')]);
  await execute(url, 'ALTER TABLE api_keys ADD COLUMN colour text');
  const differing = run('cli', ['migrate', '--check'], { DATABASE_URL: url });
  expect([await differing.ended, differing.output()]).toEqual([1, expect.stringContaining('colour')]);
});

test.each([[['--check']], [['--draft', 'new']]])(
  'where the development dependencies are not installed, migrate %j says so on one line',
  async (options) => {
    const missing = withoutModule('@prisma/schema-engine-wasm/schema_engine_bg');
    const program = runNode([...missing, 'dist/cli.js', 'migrate', ...options], {
      DATABASE_URL: await createTestDatabase(),
    });
    expect(await program.ended).toBe(1);
    expect(program.output()).toMatch(/^[^\n]*schema engine[^\n]*development dependencies[^\n]*\n$/);
  },
);

test.each([
  [['--draft', 'Pet breed'], /snake case/],
  [['--draft', 'new', '--grant-to', 'service'], /cannot be used with/],
  [['--check', '--draft', 'new'], /cannot be used with/],
])('migrate %j fails with a message that says what is wrong', async (options, message) => {
  const environment = { DATABASE_URL: 'postgresql://127.0.0.1:1/none' };
  const { code, output } = await runInProcess(['migrate', ...options], environment);
  expect([code, output]).toEqual([2, expect.stringMatching(message)]);
});
