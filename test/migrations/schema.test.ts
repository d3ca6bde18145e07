import { randomBytes } from 'node:crypto';
import { execute } from '@animal-store/platform/testing';
import { readSchema, withEngine } from '@animal-store/tools';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { create, createItemStore, list, newItemSchema } from '#operations-under-test';
import { openDatabase } from '../../packages/platform/src/connections/client.js';
import { addSampleData } from '../../packages/platform/src/database/open-database.js';
import { applyMigrations } from '../../packages/platform/src/migrations/migration-runner.js';
import { prismaFolderOf } from '../../packages/platform/src/migrations/migrations.js';
import { ALL_SCHEMAS, applyWithEngine } from '../../packages/platform/test/support/schema-engine.js';
import { definition } from '../../src/definition/definition.js';
import { SCOPES } from '../../src/definition/scopes.js';
import type { PrismaClient } from '../../src/generated/client.js';
import type { Database } from '../../src/store.js';
import { createTestDatabase } from '../support/service.js';

let migratedUrl: string;
let database: Database;
let prisma: PrismaClient;

beforeAll(async () => {
  migratedUrl = await createTestDatabase();
  database = openDatabase(migratedUrl, () => {}, definition);
  prisma = await database.loadPrisma();
});
afterAll(() => database.close());

/**
 * Everything that schema.prisma can express, one line each. It cannot express CHECK constraints, identity, and indexes on
 * expressions, such as `lower(name)` or the words of a text.
 */
const CATALOGUE = `
  SELECT format('column %s.%s %s null:%s', table_name, column_name, udt_name, is_nullable)
    || CASE WHEN column_name = 'id' THEN '' ELSE format(' default:%s precision:%s', column_default, datetime_precision) END AS line
  FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> '_prisma_migrations'
  UNION ALL
  SELECT pg_get_indexdef(indexrelid) FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
  WHERE relnamespace = 'public'::regnamespace AND relname <> '_prisma_migrations' AND indexprs IS NULL
  UNION ALL
  SELECT format('constraint %s %s', conname, pg_get_constraintdef(oid)) FROM pg_constraint
  WHERE connamespace = 'public'::regnamespace AND contype IN ('p', 'u', 'f') AND conrelid::regclass::text <> '_prisma_migrations'
  UNION ALL
  SELECT format('enum %s %s', typname, string_agg(enumlabel, ',' ORDER BY enumsortorder))
  FROM pg_enum JOIN pg_type ON pg_type.oid = enumtypid GROUP BY typname
  ORDER BY 1`;

async function readCatalogue(url: string): Promise<string[]> {
  const rows = await execute<{ line: string }>(url, CATALOGUE);
  return rows.map(({ line }) => line);
}

/** The SQL with which Prisma's engine would create schema.prisma in an empty database. */
async function printSchema(url: string, models = ''): Promise<string> {
  const files = [
    ...(await readSchema(prismaFolderOf(definition.root))),
    { path: 'further.prisma', content: models },
  ];
  const { stdout } = await withEngine(url, (engine) =>
    engine.diff({
      from: { tag: 'empty' },
      to: { tag: 'schemaDatamodel', files },
      script: true,
      exitCode: null,
      filters: ALL_SCHEMAS,
    }),
  );
  return stdout ?? '';
}

test('schema.prisma and the migrations agree', async () => {
  const emptyUrl = await createTestDatabase('template0');
  // An index may need one of those that the migrations create.
  const extensions = await execute<{ name: string }>(migratedUrl, 'SELECT extname AS name FROM pg_extension');
  for (const { name } of extensions) await execute(emptyUrl, `CREATE EXTENSION IF NOT EXISTS "${name}"`);
  await execute(emptyUrl, await printSchema(emptyUrl));
  const migrated = await readCatalogue(migratedUrl);
  expect(migrated.length).toBeGreaterThan(15);
  const sides =
    'expected: prisma/schema.prisma, received: prisma/migrations; write a migration or correct the schema';
  expect(migrated, sides).toEqual(await readCatalogue(emptyUrl));
});

/** The migrations before 1.0.0 whose work others do today, by name and with what each of them left */
const FORMER = {
  '20261126100000_pets_by_category': ['pets_by_category', 'pets_by_status_and_category'],
  '20261127200000_orders_by_status_and_pet': [
    'orders_by_status',
    'orders_by_status_and_pet',
    'orders_by_pet',
    'drop_orders_pet_id_idx',
  ],
  '20261128000100_one_open_order': ['one_open_order'],
};

test.each([
  ['npm run migrate', (url: string) => applyMigrations(url, definition.root)],
  ['prisma migrate deploy', (url: string) => applyWithEngine(url)],
])('%s accepts a database that has the migrations from before 1.0.0', async (_command, apply) => {
  const url = await createTestDatabase();
  const replaced = Object.values(FORMER).flat();
  await execute(
    url,
    `DELETE FROM _prisma_migrations WHERE substring(migration_name FROM '^\\d+_(.*)$') = ANY ('{${replaced}}');
    INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at)
    SELECT gen_random_uuid(), repeat('0', 64), name, now() FROM unnest('{${Object.keys(FORMER)}}'::text[]) AS name`,
  );
  const before = await readCatalogue(url);
  expect((await apply(url)).map((name) => name.replace(/^\d+_/, ''))).toEqual(replaced);
  expect(await readCatalogue(url)).toEqual(before);
});

/** What is deleted softly, what belongs to many, and what is searched by its words, in Prisma's schema and as a migration */
const HARBOUR_MODELS = `
  model Boat {
    id        BigInt    @id @default(autoincrement())
    name     String
    words     Unsupported("tsvector")? @default(dbgenerated())
    deletedAt DateTime? @map("deleted_at") @db.Timestamptz(3)
    piers      Pier[]
    @@index([name], where: raw("deleted_at IS NULL"))
    @@index([words], type: Gin)
    @@map("boats")
  }
  model Pier {
    id    BigInt @id @default(autoincrement())
    name  String
    boats Boat[]
    @@map("piers")
  }`;
const HARBOUR_MIGRATION = `
  CREATE TABLE boats (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT NOT NULL,
    words TSVECTOR GENERATED ALWAYS AS (to_tsvector('simple', name)) STORED,
    deleted_at TIMESTAMPTZ(3));
  CREATE INDEX boats_name_idx ON boats (name) WHERE deleted_at IS NULL;
  CREATE INDEX boats_words_idx ON boats USING gin (words);
  CREATE INDEX boats_prefix ON boats USING gin (to_tsvector('english', name));
  CREATE TABLE piers (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name TEXT NOT NULL);
  CREATE UNIQUE INDEX piers_name ON piers (lower(name));
  CREATE TABLE "_BoatToPier" (
    "A" BIGINT NOT NULL REFERENCES boats ON DELETE CASCADE ON UPDATE CASCADE,
    "B" BIGINT NOT NULL REFERENCES piers ON DELETE CASCADE ON UPDATE CASCADE,
    CONSTRAINT "_BoatToPier_AB_pkey" PRIMARY KEY ("A", "B"));
  CREATE INDEX "_BoatToPier_B_index" ON "_BoatToPier" ("B")`;

test('a soft delete, a relation of many to many and a full-text index are no difference, and a column too many is one', async () => {
  const [modelled, harbour] = [await createTestDatabase('template0'), await createTestDatabase()];
  await execute(modelled, await printSchema(modelled, HARBOUR_MODELS));
  await execute(harbour, HARBOUR_MIGRATION);
  expect(await readCatalogue(harbour)).toEqual(await readCatalogue(modelled));
  await execute(harbour, 'ALTER TABLE boats ADD COLUMN colour TEXT');
  expect(await readCatalogue(harbour)).not.toEqual(await readCatalogue(modelled));
});

test('test files of one process share the engine, so that what one has left is not freed in the memory of another', async () => {
  const url = await createTestDatabase('template0');
  await withEngine(url, async () => {});
  const instantiate = vi.spyOn(Object(globalThis).WebAssembly, 'instantiate');
  onTestFinished(() => instantiate.mockRestore());
  vi.resetModules();
  const ofNextFile = await import('@animal-store/tools');
  expect(ofNextFile.withEngine).not.toBe(withEngine);
  await ofNextFile.withEngine(url, async () => {});
  expect(instantiate).not.toHaveBeenCalled();
});

test('the sample data consists of items that the service would accept, and is inserted once', async () => {
  const seeded = openDatabase(await createTestDatabase(), () => {}, definition);
  expect(await addSampleData(definition, seeded)).toBe(true);
  const items = await createItemStore(seeded).list({ limit: 100 });
  expect(items.length).toBeGreaterThan(20);
  for (const { id, ...item } of items) expect(newItemSchema.parse(item)).toEqual(item);
  expect(await addSampleData(definition, seeded)).toBe(false);
  await seeded.close();
});

describe('Prisma Studio cannot store rows that the service cannot serve', () => {
  const key = { name: 'key', hint: 'as_test_abcd', plan: 'free' as const };

  test.each([
    ['a hash of another length', { ...key, hash: new Uint8Array(31) }],
    ['own limits on a fixed plan', { ...key, hash: new Uint8Array(32), perMinute: 5 }],
    ['an enterprise plan without limits', { ...key, hash: new Uint8Array(32), plan: 'enterprise' as const }],
    [
      'a limit of 0',
      { ...key, hash: new Uint8Array(32), plan: 'enterprise' as const, perMinute: 0, perDay: 5 },
    ],
    ['an unknown scope', { ...key, hash: new Uint8Array(32), scopes: [list.scope, 'nobody:reads'] }],
    ['no scope', { ...key, hash: new Uint8Array(32), scopes: [] }],
    ['no name', { ...key, hash: new Uint8Array(32), name: '' }],
  ])('a key with %s', async (_name, data) => {
    await expect(prisma.apiKey.create({ data })).rejects.toThrow();
  });

  test.each([
    'NULL',
    `'{}'`,
    `'{NULL}'`,
    `'{${list.scope},NULL}'`,
    `'{${list.scope.toUpperCase()}}'`,
    `'{{${list.scope}},{${create.scope}}}'`,
  ])('scopes that are %s', async (scopes) => {
    await prisma.apiKey.create({ data: { ...key, name: scopes, hash: randomBytes(32) } });
    const change = database.pool.query(`UPDATE api_keys SET scopes = ${scopes} WHERE name = $1`, [scopes]);
    await expect(change).rejects.toThrow(/api_keys_scopes_known/);
  });

  test('a key that is inserted without scopes has every scope', async () => {
    const { scopes } = await prisma.apiKey.create({ data: { ...key, hash: randomBytes(32) } });
    expect(scopes).toEqual(SCOPES);
  });

  test.each(['infinity', '-infinity', '2100-01-01T00:00:00Z'])('a ban until %s', async (bannedUntil) => {
    await prisma.apiKey.create({ data: { ...key, name: bannedUntil, hash: randomBytes(32) } });
    const ban = 'UPDATE api_keys SET banned_until = $1 WHERE name = $2';
    await expect(database.pool.query(ban, [bannedUntil, bannedUntil])).rejects.toThrow(/banned_until/);
  });

  test('two keys with one hash', async () => {
    await prisma.apiKey.create({ data: { ...key, hash: new Uint8Array(32).fill(7) } });
    await expect(
      prisma.apiKey.create({ data: { ...key, hash: new Uint8Array(32).fill(7) } }),
    ).rejects.toThrow();
  });
});
