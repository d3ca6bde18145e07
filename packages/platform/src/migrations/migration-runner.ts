import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { readCode, toDatabaseError } from '../connections/outage.js';
import { schemaOf } from '../connections/schema-name.js';
import { OperatorError } from '../operator-errors/operator-error.js';
import { COMMAND_CONNECT_TIMEOUT_MS } from '../timing/timeouts.js';
import { readIndexStatement } from './index-statement.js';
import { describeTableHolders, isLockTimeout, type LockWait, lock } from './lock-waits.js';
import {
  findPending,
  MIGRATIONS_TABLE,
  type Migration,
  readHistory,
  readMigrations,
  toFailure,
  UNDO,
} from './migrations.js';
import { findInvalidIndex, settleUnfinished, toIndexFailure } from './unfinished-migrations.js';

/** SQLSTATE active_sql_transaction: of a statement that runs in none, such as CREATE INDEX CONCURRENTLY. */
const NOT_IN_A_TRANSACTION = '25001';

/** PostgreSQL's function behind RAISE, whose messages are a script's own. All others are about objects that exist already. */
const RAISE = 'exec_stmt_raise';

/** Prisma's table, as its schema engine creates it. */
const CREATE_HISTORY = `(
  id VARCHAR(36) PRIMARY KEY NOT NULL,
  checksum VARCHAR(64) NOT NULL,
  finished_at TIMESTAMPTZ,
  migration_name VARCHAR(255) NOT NULL,
  logs TEXT,
  rolled_back_at TIMESTAMPTZ,
  started_at TIMESTAMPTZ NOT NULL DEFAULT now(),
  applied_steps_count INTEGER NOT NULL DEFAULT 0
)`;

/** The role may have the timeouts of requests, as it must behind a connection pooler. */
const SETTINGS =
  'SET statement_timeout = 0; SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0';

const COUNT_TABLES = `
  SELECT count(*)::int FROM pg_class
  WHERE relkind = 'r' AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1)`;

export interface MigrationOptions extends LockWait {
  /** The application_name of a URL that has none */
  readonly name?: string;
  /** Called with what a migration says that it has done (`RAISE NOTICE`) */
  readonly onNotice?: (message: string) => void;
}

/**
 * Applies the pending migrations to the schema of the URL, and records them as `prisma migrate deploy` does, in Prisma's
 * own table and under its lock. Each script is sent as a whole, and is one transaction with its record unless it ends that
 * itself, or is a single statement that runs in none.
 *
 * @param from the folder of a store, or the path of a folder of migrations
 * @returns the names of the migrations applied now, or found to be applied by an attempt that was killed
 * @throws OperatorError when the database cannot be used, another migration does not end, or one fails; it is then recorded
 * as failed
 */
export async function applyMigrations(
  url: string,
  from: URL | string,
  options?: MigrationOptions,
): Promise<string[]> {
  const migrations = await readMigrations(from);
  const schema = schemaOf(url);
  return withConnection(url, options?.name, async (client) => {
    await lock(client, options);
    const recorded = (await readHistory({ pool: client, schema })) ?? (await createHistory(client, schema));
    const table = `${pg.escapeIdentifier(schema)}.${MIGRATIONS_TABLE}`;
    const settled = await settleUnfinished(client, table, recorded, migrations);
    const pending = findPending(recorded, migrations).filter(({ name }) => !settled.includes(name));
    let notices: string[] = [];
    client.on('notice', ({ message = '', routine }) => void (routine === RAISE && notices.push(message)));
    for (const migration of pending) {
      notices = [];
      await apply(client, table, migration, options?.tableMs);
      // Not before: a migration that fails has done nothing.
      for (const notice of notices) options?.onNotice?.(notice);
    }
    return [...settled, ...pending.map(({ name }) => name)];
  });
}

async function withConnection<T>(
  url: string,
  name: string | undefined,
  use: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const schema = schemaOf(url);
  try {
    const client = new pg.Client({
      connectionString: url,
      connectionTimeoutMillis: COMMAND_CONNECT_TIMEOUT_MS,
      application_name: name,
    });
    // A connection that breaks rejects the query, too.
    client.on('error', () => {});
    try {
      await client.connect();
      await client.query(`${SETTINGS}; SET search_path = ${pg.escapeIdentifier(schema)}`);
      return await use(client);
    } finally {
      // Releases the lock.
      await client.end();
    }
  } catch (error) {
    throw error instanceof OperatorError ? error : toDatabaseError(error);
  }
}

/** The schema may hold no objects of others, which the service's tables would lie among. */
async function createHistory(client: pg.Client, schema: string): Promise<[]> {
  const name = pg.escapeIdentifier(schema);
  try {
    const { rows } = await client.query<{ count: number }>(COUNT_TABLES, [schema]);
    if (rows[0]?.count !== 0) throw new Error(`The schema ${name} is not empty.`);
    // IF NOT EXISTS would need the right to create schemas, even where it exists.
    const { rowCount } = await client.query('SELECT FROM pg_namespace WHERE nspname = $1', [schema]);
    if (rowCount === 0) await client.query(`CREATE SCHEMA ${name}`);
    await client.query(`CREATE TABLE ${name}.${MIGRATIONS_TABLE} ${CREATE_HISTORY}`);
    return [];
  } catch (error) {
    throw new OperatorError(
      `The migrations cannot be applied (${(error as Error).message}): check that DATABASE_URL points to the right database, with a role that may create tables there.`,
      { cause: error },
    );
  }
}

/** Applies a migration, and records it. If the process is killed meanwhile, either both are done or nothing is. */
async function apply(
  client: pg.Client,
  table: string,
  { name, script, checksum }: Migration,
  tableMs = 5_000,
): Promise<void> {
  const id = randomUUID();
  const values = [id, checksum, name].map((value) => pg.escapeLiteral(value)).join(', ');
  // Requests queue behind it meanwhile. Outside of a transaction it waits as long as it takes: it would leave an invalid index.
  const limit = `SET LOCAL lock_timeout = ${tableMs}`;
  const start = `INSERT INTO ${table} (id, checksum, migration_name) VALUES (${values})`;
  const finish = `UPDATE ${table} SET finished_at = clock_timestamp(), applied_steps_count = 1 WHERE id = '${id}'`;
  try {
    // A query without values may hold several statements, which are one transaction. A script may end with a comment.
    await client.query([limit, start, script, finish].join('\n;\n')).catch(async (error: unknown) => {
      if (readCode(error) !== NOT_IN_A_TRANSACTION) throw error;
      await client.query(start);
      await client.query(script);
      if ((await findInvalidIndex(client, script)) !== undefined)
        throw new Error('an earlier attempt left an invalid index');
      await client.query(finish);
    });
  } catch (error) {
    const { message } = error as Error;
    await client.query('ROLLBACK').catch(() => {});
    if (isLockTimeout(error) && !(await isRecorded(client, table, id)))
      throw lockedOut(name, await describeTableHolders(client, tableMs), error);
    // If the connection broke, a statement outside of a transaction stays unfinished, which counts as failed.
    await client.query(`${start} ON CONFLICT DO NOTHING`).catch(() => {});
    await client.query(`UPDATE ${table} SET logs = $2 WHERE id = $1`, [id, message]).catch(() => {});
    const what = `${name} failed (${message})`;
    if (readIndexStatement(script) === undefined) throw toFailure(what, { remedy: UNDO, cause: error });
    // Of a connection that broke, the next attempt learns what has become of the index.
    const invalid = await findInvalidIndex(client, script).catch(() => undefined);
    throw toIndexFailure(what, invalid, error);
  }
}

/** A script that ends its transaction itself may have done some of its work. */
async function isRecorded(client: pg.Client, table: string, id: string): Promise<boolean> {
  const { rowCount } = await client.query(`SELECT FROM ${table} WHERE id = $1`, [id]);
  return rowCount !== 0;
}

function lockedOut(name: string, holders: string, cause: unknown): OperatorError {
  return new OperatorError(
    `Migration ${name} waited too long for a lock, and nothing of it was applied. Look at the sessions with open transactions (${holders}), wait for them or end them with pg_terminate_backend, and repeat: npm run migrate.`,
    { cause, exitCode: 4 },
  );
}
