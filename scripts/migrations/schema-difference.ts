import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { schemaOf } from '../../packages/platform/src/connections/schema-name.js';
import { OperatorError } from '../../packages/platform/src/errors/operator-error.js';
import { applyMigrations } from '../../packages/platform/src/migrations/migration-runner.js';
import {
  MIGRATIONS_TABLE,
  prismaFolderOf,
  readMigrations,
} from '../../packages/platform/src/migrations/migrations.js';
import { COMMAND_CONNECT_TIMEOUT_MS } from '../../packages/platform/src/timing/timeouts.js';
import { definition } from '../../src/definition/definition.js';
import { withEngine } from './schema-engine.js';

/** What a draft cannot contain: see docs/recipes.md. The migration `…_pets` has an example of each. */
const REMINDERS = `-- A draft: what the migrations lack of prisma/schema.prisma. Add what Prisma cannot express, and delete these lines.
--
-- * Ids: BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991) in place of BIGSERIAL.
-- * CHECK constraints for what the schemas of inputs promise: lengths, bounds, "not only white space".
-- * A table that the service inserts into and lists by its ids: INSERT INTO "insert_turns" VALUES ('the_table');
-- * A new table, or a statement of another kind: its grants, in src/definition/identity.ts and docs/database.md.
-- * Nodes of the previous version go on running: a new column has a default or is NULL, none goes that they use, and what
--   they write satisfies a new constraint.

`;

/**
 * Describes how the database of a URL differs from schema.prisma; undefined if it does not. What Prisma cannot express,
 * such as a CHECK constraint, does not count.
 */
export function findDrift(
  url: string,
  folder = prismaFolderOf(definition.root),
): Promise<string | undefined> {
  return compare(url, { folder, isScript: false });
}

/**
 * Writes a migration with the SQL for what schema.prisma has and the migrations lack. To compare, it applies the migrations
 * to a temporary database on the server of the URL.
 *
 * @param folder of schema.prisma and the migrations
 * @returns the path of the file; undefined if the two agree
 * @throws OperatorError where the role may not create a database
 */
export async function draftMigration(
  url: string,
  name: string,
  folder = prismaFolderOf(definition.root),
): Promise<string | undefined> {
  const migrationsFolder = join(folder, 'migrations');
  const script = await withDatabase(url, async (migrated) => {
    await applyMigrations(migrated, migrationsFolder);
    return compare(migrated, { folder, isScript: true });
  });
  if (script === undefined) return undefined;
  const last = (await readMigrations(migrationsFolder)).at(-1);
  const path = join(migrationsFolder, `${chooseTime(last?.name)}_${name}`);
  await mkdir(path);
  const file = join(path, 'migration.sql');
  await writeFile(file, `${REMINDERS}${script.trim()}\n`);
  return file;
}

/** The time now, as in migrations' names, and later than that of the last migration. */
function chooseTime(last = ''): string {
  const now = new Date().toISOString().replaceAll(/\D/g, '').slice(0, 14);
  return String(Math.max(Number(now), Number.parseInt(last, 10) + 1 || 0));
}

/** The files of a schema, as Prisma's engine takes them. */
export async function readSchema(folder: string): Promise<{ path: string; content: string }[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.prisma'));
  const paths = names.map((name) => join(folder, name));
  return Promise.all(paths.map(async (path) => ({ path, content: await readFile(path, 'utf8') })));
}

async function compare(
  url: string,
  { folder, isScript }: { readonly folder: string; readonly isScript: boolean },
): Promise<string | undefined> {
  const files = await readSchema(folder);
  const filters = { externalTables: [`${schemaOf(url)}.${MIGRATIONS_TABLE}`], externalEnums: [] };
  const { exitCode, stdout } = await withEngine(url, (engine) =>
    engine.diff({
      from: { tag: 'schemaDatasource', files, configDir: folder },
      to: { tag: 'schemaDatamodel', files },
      script: isScript,
      exitCode: true,
      filters,
    }),
  );
  return exitCode === 0 ? undefined : (stdout ?? '');
}

/** Runs a function on an empty database on the server of a URL. */
async function withDatabase<T>(url: string, use: (url: string) => Promise<T>): Promise<T> {
  const name = `migrations_${randomUUID()}`;
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: COMMAND_CONNECT_TIMEOUT_MS,
  });
  client.on('error', () => {});
  const target = new URL(url);
  target.pathname = `/${name}`;
  try {
    await client.connect();
    await client.query(`CREATE DATABASE "${name}" TEMPLATE template0`);
  } catch (error) {
    await client.end();
    throw new OperatorError(
      `A draft needs a database for a moment (${(error as Error).message}): leave out DATABASE_URL, or name a server for development and a role that may create databases.`,
      { cause: error },
    );
  }
  try {
    return await use(target.href);
  } finally {
    await client.query(`DROP DATABASE "${name}" WITH (FORCE)`);
    await client.end();
  }
}
