import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { toDatabaseError } from '../connections/outage.js';
import { OperatorError } from '../operator-errors/operator-error.js';
import { type IndexStatement, readIndexStatement } from './index-statement.js';
import { listMissing } from './platform-files.js';

/** The folder prisma/ of a store. @param root the folder of the store */
export const prismaFolderOf = (root: URL): string => fileURLToPath(new URL('prisma/', root));

/** Prisma's own table, and its name in messages */
export const MIGRATIONS_TABLE = '_prisma_migrations';

/** The major version of PostgreSQL from which on there is everything that statements use, such as hash_record_extended. */
const OLDEST_POSTGRES = 14;

/** The schema in which the migrations are recorded */
export interface MigratedSchema {
  readonly pool: Pick<pg.Pool, 'query'>;
  readonly schema: string;
}

/** A migration of a folder. */
export interface Migration {
  readonly name: string;
  /** SQL with line feeds, whatever the checkout has: Windows' line ends are no change of a migration */
  readonly script: string;
  /** SHA-256 of the script, in hex */
  readonly checksum: string;
}

/** A row of Prisma's table, without those that were rolled back (`prisma migrate resolve --rolled-back`). */
export interface RecordedMigration {
  readonly name: string;
  readonly checksum: string;
  readonly isFinished: boolean;
  /** Whether an error is recorded. One that is neither finished nor failed is running, or its process was killed. */
  readonly isFailed: boolean;
}

/**
 * Rejects when the schema is behind what this service was built for: the one answer of the start, of readiness and of
 * the commands. A database that is ahead is served.
 *
 * @throws OperatorError with what to do
 */
export async function checkMigrations(root: URL, database: MigratedSchema): Promise<void> {
  const recorded = await readHistory(database);
  if (recorded === undefined) {
    throw new OperatorError(
      `The schema "${database.schema}" of the database has no table ${MIGRATIONS_TABLE}: create the tables with: npm run migrate. ` +
        'If they are in another schema, name it in DATABASE_URL: ?schema=NAME',
    );
  }
  const pending = findPending(recorded, await readMigrations(root));
  if (pending.length === 0) return;
  const names = pending.map(({ name }) => name).join(', ');
  throw new OperatorError(
    `The database lacks ${pending.length} migration(s): ${names}. Apply them with: npm run migrate`,
  );
}

/**
 * The migrations that the database lacks, in order: all of them where there is no table of Prisma's.
 *
 * @throws OperatorError when it cannot be migrated: see findPending
 */
export async function listPendingMigrations(
  root: URL,
  database: MigratedSchema,
): Promise<readonly Migration[]> {
  return findPending((await readHistory(database)) ?? [], await readMigrations(root));
}

/**
 * Undefined where there is no such table.
 *
 * @throws OperatorError when the database cannot be used, or its server is older than OLDEST_POSTGRES
 */
export async function readHistory({
  pool,
  schema,
}: MigratedSchema): Promise<readonly RecordedMigration[] | undefined> {
  const table = `${pg.escapeIdentifier(schema)}.${MIGRATIONS_TABLE}`;
  try {
    const { rows: servers } = await pool.query(
      "SELECT current_setting('server_version') AS version, to_regclass($1) AS found",
      [table],
    );
    const { version, found } = servers[0];
    if (Number.parseInt(version, 10) < OLDEST_POSTGRES) {
      throw new OperatorError(
        `The server of DATABASE_URL is PostgreSQL ${version}, which the service cannot use: upgrade it to ${OLDEST_POSTGRES} or later.`,
      );
    }
    if (found === null) return undefined;
    const { rows } = await pool.query<RecordedMigration>(`
      SELECT migration_name AS name, checksum, finished_at IS NOT NULL AS "isFinished",
        finished_at IS NULL AND logs IS NOT NULL AS "isFailed"
      FROM ${table} WHERE rolled_back_at IS NULL`);
    return rows;
  } catch (error) {
    throw error instanceof OperatorError ? error : toDatabaseError(error);
  }
}

/**
 * The migrations that are not finished.
 *
 * @throws OperatorError for a migration that failed, unless the next attempt settles it (see settleUnfinished), or that was
 * edited after it had been applied
 */
export function findPending(
  recorded: readonly RecordedMigration[],
  migrations: readonly Migration[],
): readonly Migration[] {
  const byName = new Map(recorded.map((each) => [each.name, each]));
  return migrations.filter((migration) => {
    const record = byName.get(migration.name);
    if (record?.isFailed && readSoleIndex(record, migrations) === undefined) throw failedEarlier(record.name);
    if (!record?.isFinished) return true;
    if (!matches(migration, record.checksum)) {
      throw new OperatorError(
        `Migration ${record.name} was changed after it was applied: restore the file and add a new migration. ` +
          'If it was never released and this is a development database, delete DATA_DIR (.data) instead.',
      );
    }
    return false;
  });
}

export function failedEarlier(name: string): OperatorError {
  return toFailure(`${name} failed earlier`, { remedy: UNDO });
}

/**
 * The statement of a migration that does nothing but create or drop an index concurrently, so that the index shows how far it
 * came. Undefined for every other one, and for one whose file was changed since.
 */
export function readSoleIndex(
  record: RecordedMigration,
  migrations: readonly Migration[],
): IndexStatement | undefined {
  const migration = migrations.find(({ name }) => name === record.name);
  return migration && matches(migration, record.checksum) ? readIndexStatement(migration.script) : undefined;
}

/** After a migration that may be half done */
export const UNDO = `restore the backup (or undo its changes and delete its row from ${MIGRATIONS_TABLE})`;

/** What an operator does about a migration that was not applied completely: a remedy, if there is one, comes before the next run. */
export function toFailure(
  what: string,
  { remedy, cause }: { readonly remedy: string | undefined; readonly cause?: unknown },
): OperatorError {
  return new OperatorError(
    `Migration ${what}: remove the cause, ${remedy === undefined ? '' : `${remedy}, `}and apply it again with: npm run migrate. ` +
      'If this is a development database, delete DATA_DIR (.data) instead.',
    { cause },
  );
}

/**
 * All migrations of a folder, in order.
 *
 * @param from the folder of a store, or the path of a folder of migrations
 *
 * @throws OperatorError when prisma/migrations lacks some of the installed platform
 */
export async function readMigrations(from: URL | string): Promise<readonly Migration[]> {
  const folder = typeof from === 'string' ? from : join(prismaFolderOf(from), 'migrations');
  const missing = typeof from === 'string' ? [] : await listMissing(folder);
  if (missing.length > 0) {
    throw new OperatorError(
      `prisma/migrations lacks ${missing.length} migration(s) that the installed platform brings: ${missing.join(', ')}. ` +
        'Copy them with: npm run platform, and apply them with: npm run migrate',
    );
  }
  const entries = await readdir(folder, { withFileTypes: true });
  const names = entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort();
  return Promise.all(
    names.map(async (name) => {
      const script = (await readFile(join(folder, name, 'migration.sql'), 'utf8')).replaceAll('\r\n', '\n');
      return { name, script, checksum: toChecksum(script) };
    }),
  );
}

/** Prisma's engine records the checksum of the file as it is, which may have Windows' line ends. */
function matches({ script, checksum }: Migration, recorded: string): boolean {
  return recorded === checksum || recorded === toChecksum(script.replaceAll('\n', '\r\n'));
}

function toChecksum(script: string): string {
  return createHash('sha256').update(script).digest('hex');
}
