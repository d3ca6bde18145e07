import { type Cluster, openCluster, ROLE } from './cluster.js';
import { enter } from './acquire.js';
import { EmbeddedError } from './error.js';
import type { Role } from './lock-connection.js';
import { Hold } from './lease.js';

export { EmbeddedError };

/** This process's hold on the PostgreSQL of a DATA_DIR. */
export interface EmbeddedPostgres {
  /** `postgresql://…` of the database `animal_store`, with the password; stays the same until released */
  readonly url: string;
  /** true when this call made the database, which is then empty */
  readonly created: boolean;
  /** Gives up the hold; PostgreSQL stops when no other process holds it. Never rejects: what fails is logged. */
  release(): Promise<void>;
}

export interface EmbeddedOptions {
  /** made when missing; may be relative */
  readonly dataDir: string;
  /** `service`: at most one per DATA_DIR; `guest`: any number, beside a service or without */
  readonly role: Role;
  readonly log: (message: string) => void;
  /** told when PostgreSQL is lost and when an attempt to bring it back has failed; without it both are logged */
  readonly onFault?: (error: Error) => void;
}

/**
 * Opens PostgreSQL on the files in DATA_DIR: makes them the first time, starts the server or adopts the one that still
 * runs, and whenever it dies starts it again on the same port, until released. A process that ends without a release
 * leaves the server running for the next one.
 *
 * @throws EmbeddedError when DATA_DIR or PostgreSQL cannot be used, or another service runs on them.
 */
export async function openEmbedded(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const { dataDir, role, log, onFault = (error: Error) => log(error.message) } = options;
  const cluster = await clusterIn(dataDir);
  const entry = await enter({ cluster, role });
  log(`PostgreSQL listens on 127.0.0.1:${entry.port}, its files are in ${cluster.folder}`);
  const hold = new Hold(entry, { cluster, role, log, onFault });
  return {
    url: `postgresql://${ROLE}:${cluster.password}@127.0.0.1:${entry.port}/${ROLE}?sslmode=disable`,
    created: cluster.created,
    release: () => hold.release(),
  };
}

async function clusterIn(dataDir: string): Promise<Cluster> {
  try {
    return await openCluster(dataDir);
  } catch (cause) {
    if (cause instanceof EmbeddedError) throw cause;
    const reason = cause instanceof Error ? cause.message : cause;
    throw new EmbeddedError(
      `DATA_DIR ${dataDir} cannot be used (${reason}): choose a folder of your own as DATA_DIR, or set DATABASE_URL.`,
      { cause },
    );
  }
}
