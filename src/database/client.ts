import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { PrismaClient } from './generated/client.js';
import { Reader } from './reader.js';

/** How long a query may wait for a connection, and for its answer, in milliseconds. */
const CONNECT_TIMEOUT_MS = 1_000;
const QUERY_TIMEOUT_MS = 1_500;
const MAX_CONNECTIONS = 10;
/**
 * Set on every connection before its first use. Prisma's adapter writes and reads times without their offset, which is
 * right in UTC alone; and a process that is frozen within a transaction shall not keep its locks.
 */
const SESSION = `SET TIME ZONE 'UTC'; SET idle_in_transaction_session_timeout = '5s'`;

export interface Database {
  readonly prisma: PrismaClient;
  /** The pool that Prisma uses too. */
  readonly pool: pg.Pool;
  readonly reader: Reader;
  /** How the connections of both are used at this moment */
  readonly use: PoolUse;
  close(): Promise<void>;
}

/**
 * Opens the database lazily: nothing is sent before the first query, and a database that is away shows as an error of
 * that query within CONNECT_TIMEOUT_MS + QUERY_TIMEOUT_MS.
 *
 * @param url postgresql:// connection string
 * @param onIdleError told of a connection that broke while nothing used it; the pool has replaced it
 */
export function openDatabase(url: string, onIdleError: (error: Error) => void): Database {
  const options = {
    connectionString: url,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
    keepAlive: true,
    application_name: 'animal-store',
  };
  const reader = new Reader(options);
  const pool = new pg.Pool({
    ...options,
    max: MAX_CONNECTIONS,
    onConnect: (client) => client.query(SESSION),
  });
  pool.on('error', onIdleError);
  pool.on('release', endUnfinished);
  const prisma = new PrismaClient({ adapter: new PrismaPg(pool), errorFormat: 'minimal' });
  return {
    prisma,
    pool,
    reader,
    use: {
      get totalCount() {
        return pool.totalCount + reader.connections;
      },
      get idleCount() {
        return pool.idleCount;
      },
      get waitingCount() {
        return pool.waitingCount + reader.waiting;
      },
    },
    async close() {
      await prisma.$disconnect();
      await reader.close();
      await pool.end();
    },
  };
}

/** How connections are used at this moment. */
export interface PoolUse {
  readonly totalCount: number;
  readonly idleCount: number;
  /** Queries that wait for a connection, or stand behind another on theirs */
  readonly waitingCount: number;
}

/**
 * Prisma gives a connection back as sound even when its COMMIT or ROLLBACK had no answer in time. The next query on it
 * would run inside the open transaction, and be lost with it after it had been acknowledged.
 */
function endUnfinished(error: Error | undefined, client: pg.PoolClient & pg.Client): void {
  const status = client.getTransactionStatus();
  if (!error && (status === 'T' || status === 'E')) void client.end().catch(() => {});
}
