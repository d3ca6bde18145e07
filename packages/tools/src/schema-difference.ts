import { randomUUID } from 'node:crypto';
import {
  applyMigrations,
  MIGRATIONS_TABLE,
  OperatorError,
  schemaOf,
} from '@animal-store/platform/development';
import pg from 'pg';
import { readSchema, withEngine } from './schema-engine.js';

/** How long a server may take to accept a connection, and a statement to run */
const TIMEOUT_MS = 10_000;

/**
 * Describes how the database of a URL differs from schema.prisma; undefined if it does not. What Prisma cannot express,
 * such as a CHECK constraint, does not count.
 *
 * @param folder of schema.prisma
 */
export const findDrift = (url: string, folder: string) => compare(url, folder, { isScript: false });

/** The SQL with which the database of a URL would agree with schema.prisma; undefined if it does. */
export const writeDifference = (url: string, folder: string) => compare(url, folder, { isScript: true });

async function compare(
  url: string,
  folder: string,
  { isScript }: { readonly isScript: boolean },
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
  ).catch((error: Error) => {
    if (error.name !== 'SchemaConnectorError') throw error;
    const [reason] = error.message.split('\n', 1);
    throw new OperatorError(
      `Prisma refuses the schema in prisma/ (${reason}): mend it where npx prisma validate shows.`,
      { cause: error },
    );
  });
  return exitCode === 0 ? undefined : (stdout ?? '');
}

/**
 * Runs a function on a temporary database with the migrations of a folder, on the server of a URL.
 *
 * @throws OperatorError where the role may not create a database
 */
export async function withMigrated<T>(
  url: string,
  migrationsFolder: string,
  use: (url: string) => Promise<T>,
): Promise<T> {
  const name = `migrations_${randomUUID()}`;
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: TIMEOUT_MS });
  client.on('error', () => {});
  const target = new URL(url);
  target.pathname = `/${name}`;
  try {
    await client.connect();
    await client.query(`CREATE DATABASE "${name}" TEMPLATE template0`);
  } catch (error) {
    await client.end();
    throw new OperatorError(
      `This needs a database for a moment (${(error as Error).message}): leave out DATABASE_URL, or name a server for development and a role that may create databases.`,
      { cause: error },
    );
  }
  try {
    await applyMigrations(target.href, migrationsFolder);
    return await use(target.href);
  } finally {
    await client.query(`DROP DATABASE "${name}" WITH (FORCE)`);
    await client.end();
  }
}

/** Runs scripts on the schema of a URL, each in a transaction of its own. Returns why one failed, if one did. */
export async function tryScripts(url: string, scripts: readonly string[]): Promise<string | undefined> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: TIMEOUT_MS });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query(`SET search_path = ${pg.escapeIdentifier(schemaOf(url))}`);
    for (const script of scripts) await client.query(script);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  } finally {
    await client.end();
  }
}
