import { acquire } from './acquire.js';
import { openCluster } from './database-cluster.js';
import { EmbeddedPostgresError, type EmbeddedPostgresErrorCode } from './error.js';
import { Lease } from './lease.js';
import type { Mode } from './lock-connection.js';

export { EmbeddedPostgresError, type EmbeddedPostgresErrorCode, type Mode };

export interface EmbeddedPostgresOptions {
  /** Where the database lives, in a subdirectory `postgres`. Created when missing; may be relative. */
  readonly dataDir: string;
  /** The name of the database and of the role that owns it, which never change. */
  readonly database: string;
  /** `exclusive`: at most one process per data directory. `shared` (default): any number, with or without an exclusive process. */
  readonly mode?: Mode;
  /** For root only: where to put files that PostgreSQL's account cannot reach in their usual place. */
  readonly systemDir?: string;
  readonly log?: (message: string) => void;
  /** Called when PostgreSQL is lost and when an attempt to restart it has failed; by default both go to `log`. */
  readonly onError?: (error: Error) => void;
}

/** A running PostgreSQL, and this process's lease on it. */
export interface EmbeddedPostgres {
  /** `postgresql://…` of the database, with the password; the same until released, and usually after that. */
  readonly url: string;
  /** Whether this call created the database, which is empty then. */
  readonly created: boolean;
  /** Gives up the lease; PostgreSQL stops when no other process has one. Never rejects: failures are logged. */
  release(): Promise<void>;
}

const DEFAULT_SYSTEM_DIR = '/var/lib/embedded-postgres';

/** Names that need no quoting in a URL and that a new cluster does not use yet. */
const DATABASE_NAME = /^(?!pg_|postgres$|template[01]$)[a-z_][a-z0-9_]{0,62}$/;

/**
 * Starts PostgreSQL on the files in `dataDir`, which it creates the first time, or adopts the server that already runs
 * on them. Whenever the server dies it is restarted on the same port, until the release. A process that exits without
 * a release leaves the server running for the next one.
 *
 * @throws EmbeddedPostgresError when the data directory or PostgreSQL cannot be used, or another process is exclusive
 */
export async function createEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { dataDir, database, mode = 'shared', systemDir = DEFAULT_SYSTEM_DIR, log = () => {} } = options;
  const { onError = (error: Error) => log(error.message) } = options;
  if (!DATABASE_NAME.test(database)) throw new TypeError(`Not a usable database name: ${database}`);
  const cluster = await openCluster({ dataDir, database, systemDir });
  const connection = await acquire({ cluster, mode });
  const address = `127.0.0.1:${connection.port}`;
  log(`PostgreSQL listens on ${address}, its files are in ${cluster.directory}`);
  const lease = new Lease(connection, { cluster, mode, log, onError });
  return {
    url: `postgresql://${database}:${cluster.password}@${address}/${database}?sslmode=disable`,
    created: cluster.created,
    release: () => lease.release(),
  };
}
