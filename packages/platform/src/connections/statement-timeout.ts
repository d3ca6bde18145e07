import pg from 'pg';
import { QUERY_TIMEOUT_MS, STATEMENT_TIMEOUT_MS } from '../timing/timeouts.js';
import { isSessionStale } from './outage.js';

/** How long after the end of a statement its response may arrive. */
const RESPONSE_MARGIN_MS = QUERY_TIMEOUT_MS - STATEMENT_TIMEOUT_MS;

interface TimeoutOptions {
  /**
   * Whether the rows of a query are its result. If not, the query runs once more in the same transaction. By then it has its
   * locks, and sees what others stored while it waited. Default: they always are
   */
  readonly isFinal?: (rows: unknown[]) => boolean;
  /** What the record of keys and pg_stat_activity show meanwhile. Default: the connection's */
  readonly applicationName?: string | undefined;
}

/**
 * Queries of a pool with a time limit. Each is a transaction, because a pooler would pass a setting of the session on to
 * others.
 *
 * @param readTimeoutMs called when a query has its connection
 */
export function withStatementTimeout(
  pool: pg.Pool,
  readTimeoutMs: () => number,
  { isFinal = () => true, applicationName }: TimeoutOptions = {},
): Pick<pg.Pool, 'query'> {
  const named =
    applicationName === undefined
      ? ''
      : `; SET LOCAL application_name = ${pg.escapeLiteral(applicationName)}`;
  const query = async (text: string, values: unknown[]) => {
    const client = await pool.connect();
    const timeoutMs = Math.max(1, Math.floor(readTimeoutMs()));
    try {
      await client.query(`BEGIN; SET LOCAL statement_timeout = ${timeoutMs}${named}`);
      const timeout = { query_timeout: timeoutMs + RESPONSE_MARGIN_MS };
      let result = await client.query({ text, values, ...timeout });
      if (!isFinal(result.rows)) result = await client.query({ text, values, ...timeout });
      await client.query('COMMIT');
      client.release();
      return result;
    } catch (error) {
      void release(client, error as Error);
      throw error;
    }
  };
  return { query: query as pg.Pool['query'] };
}

/**
 * An error from PostgreSQL leaves the connection as good as before. If all queries that wait for a row ended their connections
 * at the same time, the pool would have none, and readiness would wait behind the next queries. Without a response, the pool
 * has to know that PostgreSQL may go on.
 */
async function release(client: pg.PoolClient, error: Error): Promise<void> {
  const isGood =
    error instanceof pg.DatabaseError &&
    !isSessionStale(error) &&
    (await client.query('ROLLBACK').then(
      () => true,
      () => false,
    ));
  client.release(isGood ? undefined : error);
}
