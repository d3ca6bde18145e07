import pg from 'pg';
import { QUERY_TIMEOUT_MS, STATEMENT_TIMEOUT_MS } from '../timing/timeouts.js';
import { isSessionStale } from './outage.js';

/** How long after PostgreSQL has ended a statement its response may come. */
const RESPONSE_MARGIN_MS = QUERY_TIMEOUT_MS - STATEMENT_TIMEOUT_MS;

interface TimeoutOptions {
  /**
   * Whether the rows of a query are what it is about. If not, it runs once more in the same transaction: it has its locks by
   * then, and sees what others have stored while it waited for them. Default: they always are
   */
  readonly isFinal?: (rows: unknown[]) => boolean;
  /** What the record of keys and pg_stat_activity show meanwhile. Default: the connection's */
  readonly applicationName?: string | undefined;
}

/**
 * Queries of a pool that may take as long as this, and no longer. Each is a transaction, because a pooler would hand a
 * setting of the session on to others.
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
 * What PostgreSQL has answered with an error leaves the connection as good as before. If all that wait for a row ended theirs at
 * the same time, their pool would have none, and readiness would wait behind the next ones for its first. Without an answer
 * the pool wants to know that PostgreSQL may go on.
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
