import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { EmbeddedPostgresError } from '@animal-store/embedded-postgres';
import pg from 'pg';
import { openDatabase } from '../connections/client.js';
import type { ConnectionOptions, Connections } from '../connections/connections.js';
import { untilConnected } from '../connections/outage.js';
import type { Definition } from '../definition/definition.js';
import { applyMigrations } from '../migrations/migration-runner.js';
import { listPendingMigrations } from '../migrations/migrations.js';
import { OperatorError } from '../operator-errors/operator-error.js';

const ALTERNATIVE = 'Or set DATABASE_URL to a PostgreSQL of your own.';

/** The database that the configuration names, or the embedded one. */
export type ConfiguredDatabase = Awaited<ReturnType<typeof openConfiguredDatabase>>;

export interface ConfiguredOptions extends Pick<ConnectionOptions, 'connectTimeoutMs' | 'applicationName'> {
  readonly definition: Definition;
  readonly config: {
    /** undefined: the embedded PostgreSQL in dataDir */
    readonly databaseUrl: string | undefined;
    /** The same by now */
    readonly readDatabaseUrl?: () => string | undefined;
    readonly dataDir: string;
  };
  /** Only one service may use an embedded database, beside any number of guests (command line, Prisma Studio). */
  readonly role: 'service' | 'guest';
  /** Whether to leave pending migrations unapplied. Default false */
  readonly isLeftAsItIs?: boolean;
  readonly log: { info(message: string): void; warn(bindings: object, message: string): void };
}

/**
 * Opens the database: DATABASE_URL as it is, or else the embedded PostgreSQL, to which it applies pending migrations unless
 * it is to be left as it is.
 *
 * @throws OperatorError when the embedded PostgreSQL cannot be used
 */
export async function openConfiguredDatabase(options: ConfiguredOptions) {
  const { definition, connectTimeoutMs, applicationName, isLeftAsItIs = false } = options;
  const { databaseUrl } = options.config;
  const isEmbedded = databaseUrl === undefined;
  const { url, release } = isEmbedded
    ? await startEmbedded(options)
    : { url: databaseUrl, release: async () => {} };
  let isClosing = false;
  const warn = (error: Error) => {
    // The pool does not wait until its connections have ended, and PostgreSQL may be the first to end them.
    if (!isClosing) options.log.warn({ err: error }, 'a database connection broke');
  };
  const onRefused = (error: Error, count: number, most: number) => {
    const message = `the database allows no further connection: the service goes on, more slowly, with ${count} of up to ${most} (connection_limit=${count} in DATABASE_URL asks for no more)`;
    options.log.warn({ err: error }, message);
  };
  const readUrl = () => (isEmbedded ? undefined : options.config.readDatabaseUrl?.()) ?? url;
  const database = openDatabase(url, warn, definition, {
    connectTimeoutMs,
    applicationName,
    onRefused,
    readUrl,
  });
  const close = async () => {
    isClosing = true;
    await database.close().finally(release);
  };
  try {
    const isMigrated = isEmbedded && !isLeftAsItIs;
    const say = (message: string) => options.log.info(message);
    const listPending = () => listPendingMigrations(definition.root, database);
    if (isMigrated && (await untilConnected(listPending)).length > 0)
      await applyMigrations(url, definition.root, {
        name: definition.identity.name,
        onWaiting: say,
        onNotice: say,
      });
  } catch (error) {
    await close();
    throw error;
  }
  return { url, database, isEmbedded, close };
}

async function startEmbedded({ definition, config, role, log }: ConfiguredOptions) {
  // pg takes from PGOPTIONS and the like what a URL does not say. They are meant for other servers.
  for (const name of Object.keys(process.env)) if (name.startsWith('PG')) delete process.env[name];
  const { createEmbeddedPostgres, EmbeddedPostgresError } = await loadEmbeddedPostgres();
  return createEmbeddedPostgres({
    ...definition.identity.embedded,
    dataDir: config.dataDir,
    mode: role === 'service' ? 'exclusive' : 'shared',
    log: (message) => log.info(message),
    onError: (error) => log.warn({ err: error }, 'the embedded PostgreSQL failed'),
  }).catch((error: unknown) => {
    throw error instanceof EmbeddedPostgresError ? toOperatorError(error, config.dataDir) : error;
  });
}

/** Loads the embedded PostgreSQL only when it is used: production, which refuses it, installs no such dependency. */
async function loadEmbeddedPostgres() {
  try {
    return await import('@animal-store/embedded-postgres');
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw cause;
    throw new OperatorError(
      'DATABASE_URL is missing, and the embedded PostgreSQL is not installed: it is a development dependency.',
      { cause },
    );
  }
}

function toOperatorError(error: EmbeddedPostgresError, dataDir: string): OperatorError {
  const service = error.pid === undefined ? 'Another service' : `Another service (pid ${error.pid})`;
  const messages = {
    IN_USE: `${service} is running on DATA_DIR ${resolve(dataDir)}: stop it, or set DATA_DIR to another folder.`,
    DATA_DIR_UNUSABLE: `DATA_DIR ${dataDir} cannot be used: ${error.message} ${ALTERNATIVE}`,
    CANNOT_RUN: `The embedded PostgreSQL cannot be used: ${error.message} ${ALTERNATIVE}`,
    SERVER_FAILED: `${error.message} ${ALTERNATIVE}`,
  };
  return new OperatorError(messages[error.code], { cause: error });
}

/** Adds the sample data, if there is any, to a database whose main table is empty; returns whether it did. */
export async function addSampleData(
  { root, identity }: Pick<Definition, 'root' | 'identity'>,
  { pool, schema, inSchema }: Pick<Connections, 'pool' | 'schema' | 'inSchema'>,
): Promise<boolean> {
  const seed = new URL('prisma/seed.sql', root);
  const { rows } = await pool.query(`SELECT 1 FROM ${inSchema(identity.mainTable)} LIMIT 1`);
  if (rows.length > 0 || !existsSync(seed)) return false;
  // Statements that are sent together are a transaction, in which the names of the script are those of the schema.
  const path = `SET LOCAL search_path = ${pg.escapeIdentifier(schema)}, pg_temp`;
  await pool.query(`${path};\n${await readFile(seed, 'utf8')}`);
  return true;
}
