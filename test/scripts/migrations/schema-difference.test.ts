import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { createTemporaryFolder, execute, runNode } from '@animal-store/platform/testing';
import { expect, onTestFinished, test } from 'vitest';
import { OperatorError } from '../../../packages/platform/src/errors/operator-error.js';
import { applyMigrations } from '../../../packages/platform/src/migrations/migration-runner.js';
import { prismaFolderOf, readMigrations } from '../../../packages/platform/src/migrations/migrations.js';
import { draftMigration, findDrift } from '../../../scripts/migrations/schema-difference.js';
import { definition } from '../../../src/definition/definition.js';
import { asService, createTestDatabase } from '../../support/service.js';

/** A copy of prisma/, and what adds a model to its schema. */
async function copyPrisma() {
  const folder = await createTemporaryFolder();
  onTestFinished(() => rm(folder, { recursive: true }));
  await cp(prismaFolderOf(definition.root), folder, { recursive: true });
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
  for (const part of [
    'GENERATED ALWAYS AS IDENTITY',
    'CHECK',
    '"insert_turns"',
    'src/definition/identity.ts',
  ])
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
    await applyMigrations(url, definition.root);
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

/** As the npm scripts start them */
const start = (tool: string, databaseUrl: string, ...args: string[]) =>
  runNode(
    ['--conditions=@animal-store/source', '--import', 'tsx', `scripts/migrations/${tool}.ts`, ...args],
    { DATABASE_URL: databaseUrl },
  );

test('npm run migrate:check says where the database differs, and exits with 1 only then', async () => {
  const url = await createTestDatabase();
  const agreeing = start('check', url);
  expect([await agreeing.ended, agreeing.output()]).toEqual([0, expect.stringContaining('agrees')]);
  await execute(url, 'ALTER TABLE api_keys ADD COLUMN colour text');
  const differing = start('check', url);
  expect([await differing.ended, differing.output()]).toEqual([1, expect.stringContaining('colour')]);
});

test('npm run migrate:draft says that there is nothing to draft, and which names it takes', async () => {
  const url = await createTestDatabase();
  const drafting = start('draft', url, 'nothing');
  expect([await drafting.ended, drafting.output()]).toEqual([0, expect.stringMatching(/^Nothing to draft/)]);
  for (const args of [[], ['Pet breed'], ['new', 'old']]) {
    const refused = start('draft', url, ...args);
    expect([await refused.ended, refused.output()]).toEqual([2, expect.stringMatching(/snake case/)]);
  }
});
