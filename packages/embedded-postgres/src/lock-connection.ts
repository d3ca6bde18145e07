import { join } from 'node:path';
import { Client } from 'pg';
import { type Cluster, ROLE } from './cluster.js';

export type Role = 'service' | 'guest';

/** A connection that holds PostgreSQL: its advisory locks tell the other processes that this one needs it. */
export interface Guard {
  readonly client: Client;
  /** resolves when the connection is gone, whoever ended it */
  readonly gone: Promise<void>;
}

/**
 * What stands behind a port: a connection; `absent`, nothing listens or it is another cluster's server; `busy`, a
 * server that is starting or stopping; an error, something else that does not let us in.
 */
export type Found = Guard | 'absent' | 'busy' | Error;

// Ids of advisory locks. They belong to a database, and in `postgres` nobody but this file takes any.
const SERVICE = 1;
const HOLDERS = 2;

// cannot_connect_now, crash_shutdown, admin_shutdown, query_canceled (stopped while authenticating), too_many_connections
const BUSY = ['57P03', '57P02', '57P01', '57014', '53300'];

/** Looks behind a port for the server of exactly this cluster. */
export async function lookBehind(port: number, cluster: Cluster): Promise<Found> {
  const client = new Client({
    host: '127.0.0.1',
    port,
    user: ROLE,
    password: cluster.password,
    database: 'postgres',
    ssl: false,
    keepAlive: true,
    connectionTimeoutMillis: 2000,
    query_timeout: 2000,
  });
  const gone = new Promise<void>((resolve) => client.once('end', () => resolve()));
  // The loss shows in `gone`; without a listener it would end the process.
  client.on('error', () => {});
  try {
    await client.connect();
    // A copied DATA_DIR has the password and the lock file of the original.
    const { rows } = await client.query(`SELECT current_setting('data_directory') AS folder`);
    if (rows[0]?.folder === join(cluster.folder, 'data')) return { client, gone };
    await client.end();
    return 'absent';
  } catch (error) {
    client.end().catch(() => {});
    return meaning(error);
  }
}

function meaning(error: unknown): 'absent' | 'busy' | Error {
  if (!(error instanceof Error)) return new Error(String(error));
  const code = 'code' in error ? error.code : undefined;
  if (code === 'ECONNREFUSED') return 'absent';
  // https://www.postgresql.org/docs/18/errcodes-appendix.html
  return typeof code === 'string' && BUSY.includes(code) ? 'busy' : error;
}

/**
 * Takes the locks of a role. `refused`: another service holds this DATA_DIR. `stopping`: the last holder is about to
 * stop the server. After either the connection has to be ended.
 */
export async function takeLocks({ client }: Guard, role: Role): Promise<'held' | 'refused' | 'stopping'> {
  // In this order: a holder, were it for a moment only, would keep the last one from stopping the server.
  if (role === 'service' && !(await isTrue(client, `pg_try_advisory_lock(${SERVICE})`))) return 'refused';
  return (await isTrue(client, `pg_try_advisory_lock_shared(${HOLDERS})`)) ? 'held' : 'stopping';
}

/**
 * Gives the locks back and answers whether nobody else holds PostgreSQL. If so, nobody can come to hold it until this
 * connection ends, and the caller stops it.
 */
export async function giveUpLocks({ client }: Guard): Promise<boolean> {
  // Of several that leave at once, the one whose own lock is gone last finds no other.
  await client.query('SELECT pg_advisory_unlock_all()');
  return isTrue(client, `pg_try_advisory_lock(${HOLDERS})`);
}

async function isTrue(client: Client, expression: string): Promise<boolean> {
  const { rows } = await client.query(`SELECT ${expression} AS answer`);
  return rows[0]?.answer === true;
}
