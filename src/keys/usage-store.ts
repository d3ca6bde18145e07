import type pg from 'pg';
import type { Database } from '../database/client.js';

/** For how many days usage is kept and shown, today included. */
export const USAGE_DAYS = 30;
const DAY_MS = 86_400_000;

/** How often a key called an operation on one day. */
export interface Usage {
  /** Of UTC, as YYYY-MM-DD */
  readonly day: string;
  readonly operation: string;
  readonly requests: number;
}

export interface KeyUsage extends Usage {
  readonly apiKeyId: string;
}

/** Usage was sent, and whether it is stored can only be asked of the database, by the name of the transaction. */
export class UnsettledError extends Error {
  readonly transaction: string;

  constructor(transaction: string, cause: unknown) {
    super('It is not known whether usage was stored', { cause });
    this.transaction = transaction;
  }
}

export interface UsageStore {
  /**
   * Adds to what is stored, all or nothing. What belongs to a key that is no more is left out.
   *
   * @throws UnsettledError when all may be stored or nothing; any other error says nothing is
   */
  add(rows: readonly KeyUsage[]): Promise<void>;
  /** What became of a transaction that add could not see the end of. */
  findOutcome(transaction: string): Promise<'stored' | 'lost' | 'running'>;
  /** What a key has called in the last 30 days, by day and operation, days without a call left out. */
  read(apiKeyId: string, now: number): Promise<Usage[]>;
  /** Removes what is older than 30 days. */
  forgetOld(now: number): Promise<void>;
}

/** In the order of the primary key, so that nodes that add at the same time wait for, and never block, each other. */
const ADD = `
  INSERT INTO api_key_usage (api_key_id, day, operation, requests)
  SELECT added.* FROM unnest($1::uuid[], $2::date[], $3::text[], $4::bigint[])
    AS added (api_key_id, day, operation, requests)
  JOIN api_keys ON api_keys.id = added.api_key_id
  ORDER BY 1, 2, 3
  ON CONFLICT (api_key_id, day, operation)
  DO UPDATE SET requests = least(api_key_usage.requests + excluded.requests, 9007199254740991)`;

/** A connection that is lost in between must not keep the rows locked. */
const BEGIN = `BEGIN; SET LOCAL idle_in_transaction_session_timeout = '5s'`;

/** The only place with queries on usage. `now` is in Unix milliseconds. */
export function createUsageStore({ pool }: Pick<Database, 'pool'>): UsageStore {
  return {
    add: (rows) => add(pool, rows),
    findOutcome: (transaction) => findOutcome(pool, transaction),
    async read(apiKeyId, now) {
      const { rows } = await pool.query<Usage>(
        `SELECT day::text, operation, requests::float8 AS requests FROM api_key_usage
         WHERE api_key_id = $1 AND day >= $2 ORDER BY day, operation COLLATE "C"`,
        [apiKeyId, firstDay(now)],
      );
      return rows;
    },
    async forgetOld(now) {
      await pool.query('DELETE FROM api_key_usage WHERE day < $1', [firstDay(now)]);
    },
  };
}

/** The day of UTC that a moment belongs to, as YYYY-MM-DD. */
export function toDay(now: number): string {
  return new Date(now).toISOString().slice(0, 10);
}

function firstDay(now: number): string {
  return toDay(now - (USAGE_DAYS - 1) * DAY_MS);
}

async function add(pool: pg.Pool, rows: readonly KeyUsage[]): Promise<void> {
  const client = await pool.connect();
  const ignore = () => {};
  client.on('error', ignore);
  let transaction: string | undefined;
  let isBroken = true;
  try {
    await client.query(BEGIN);
    const named = await client.query<{ id: string }>('SELECT pg_current_xact_id()::text AS id');
    transaction = named.rows[0]?.id;
    await client.query(ADD, [
      rows.map(({ apiKeyId }) => apiKeyId),
      rows.map(({ day }) => day),
      rows.map(({ operation }) => operation),
      rows.map(({ requests }) => requests),
    ]);
    await client.query('COMMIT');
    isBroken = false;
  } catch (error) {
    throw transaction === undefined ? error : new UnsettledError(transaction, error);
  } finally {
    client.off('error', ignore);
    client.release(isBroken);
  }
}

/** A database that does not know the transaction, restored or another since, does not have what it stored. */
async function findOutcome(pool: pg.Pool, transaction: string): Promise<'stored' | 'lost' | 'running'> {
  const { rows } = await pool.query<{ status: string | null }>(
    `SELECT CASE WHEN $1::xid8 < pg_current_xact_id()
       THEN pg_xact_status($1::xid8) ELSE 'unknown' END AS status`,
    [transaction],
  );
  const status = rows[0]?.status;
  if (status === 'in progress') return 'running';
  // Null is a transaction so old that the database has forgotten how it ended.
  return status === 'committed' || status === null ? 'stored' : 'lost';
}
