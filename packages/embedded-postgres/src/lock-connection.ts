import { join } from 'node:path';
import { pid } from 'node:process';
import { Client } from 'pg';
import type { Cluster } from './database-cluster.js';

/** Of the processes that share a data directory, at most one is exclusive. */
export type Mode = 'exclusive' | 'shared';

// Ids of advisory locks. They are local to a database, and in `postgres` nothing else takes any.
const EXCLUSIVE_LOCK = 1;
const LEASE_LOCK = 2;

/** The name of each connection in the server, followed by the pid of its process */
const NAME = 'embedded-postgres of process ';
const FIND_EXCLUSIVE = `
  SELECT substr(application_name, ${NAME.length + 1})::int AS pid
  FROM pg_locks JOIN pg_stat_activity USING (pid)
  WHERE locktype = 'advisory' AND objid = ${EXCLUSIVE_LOCK} AND granted AND starts_with(application_name, '${NAME}')`;

const CONNECT_TIMEOUT_MS = 2000;
const QUERY_TIMEOUT_MS = 2000;

/** SQLSTATEs of a server that is starting or stopping: https://www.postgresql.org/docs/18/errcodes-appendix.html */
const BUSY_CODES = new Set([
  '57P03', // cannot_connect_now
  '57P02', // crash_shutdown
  '57P01', // admin_shutdown
  '57014', // query_canceled: stopped during authentication
  '53300', // too_many_connections
]);

/**
 * What responds on a port: the cluster's server; nothing, or another cluster's server (`absent`); a server that is
 * starting or stopping (`busy`); or an error.
 */
export type ConnectResult = LockConnection | 'absent' | 'busy' | Error;

/** A connection whose advisory locks tell other processes that this one needs the server. */
export class LockConnection {
  readonly port: number;
  /** Resolves when the connection is closed, on either side */
  readonly closed: Promise<void>;
  readonly #client: Client;

  private constructor(client: Client) {
    this.port = client.port;
    this.#client = client;
    this.closed = new Promise((resolve) => client.once('end', () => resolve()));
    // `closed` reports a lost connection; without a listener the event would end the process.
    client.on('error', () => {});
  }

  /** Connects to the server of exactly this cluster. */
  static async open(cluster: Cluster, port: number | undefined): Promise<ConnectResult> {
    if (port === undefined) return 'absent';
    const client = new Client({
      host: '127.0.0.1',
      port,
      user: cluster.database,
      password: cluster.password,
      database: 'postgres',
      ssl: false,
      keepAlive: true,
      application_name: NAME + pid,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: QUERY_TIMEOUT_MS,
    });
    const connection = new LockConnection(client);
    try {
      await client.connect();
      // A copy of a data directory has the password and the lock file of the original.
      const { rows } = await client.query(`SELECT current_setting('data_directory') AS directory`);
      if (rows[0]?.directory === join(cluster.directory, 'data')) return connection;
      await connection.close();
      return 'absent';
    } catch (error) {
      void connection.close();
      return classify(error);
    }
  }

  /**
   * Takes the locks of a mode. `in-use`: another process has the exclusive lock. `stopping`: the last user is about to
   * stop the server. After either the connection must be closed.
   */
  async lock(mode: Mode): Promise<'locked' | 'in-use' | 'stopping'> {
    // The order matters: even a short-lived lease would keep the last user from stopping the server.
    if (mode === 'exclusive' && !(await this.#query(`pg_try_advisory_lock(${EXCLUSIVE_LOCK})`)))
      return 'in-use';
    return (await this.#query(`pg_try_advisory_lock_shared(${LEASE_LOCK})`)) ? 'locked' : 'stopping';
  }

  /**
   * Releases the locks and returns whether nobody else needs the server. If so, nobody can take a lease until this
   * connection closes, and the caller stops the server.
   */
  async unlock(): Promise<boolean> {
    // When several processes leave at once, the one that unlocks last finds no other lease.
    await this.#client.query('SELECT pg_advisory_unlock_all()');
    return this.#query(`pg_try_advisory_lock(${LEASE_LOCK})`);
  }

  /** The pid of the exclusive process; undefined if it has just left. */
  async findExclusive(): Promise<number | undefined> {
    const { rows } = await this.#client.query<{ pid: number }>(FIND_EXCLUSIVE);
    return rows[0]?.pid;
  }

  async close(): Promise<void> {
    await this.#client.end().catch(() => {});
  }

  async #query(expression: string): Promise<boolean> {
    const { rows } = await this.#client.query(`SELECT ${expression} AS result`);
    return rows[0]?.result === true;
  }
}

function classify(error: unknown): 'absent' | 'busy' | Error {
  if (!(error instanceof Error)) return new Error(String(error));
  const code = 'code' in error ? error.code : undefined;
  if (code === 'ECONNREFUSED') return 'absent';
  return typeof code === 'string' && BUSY_CODES.has(code) ? 'busy' : error;
}
