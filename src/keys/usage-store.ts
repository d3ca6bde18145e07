import type { Connections } from '../database/connections.js';

/** For how many days usage is kept and shown, today included. */
export const USAGE_DAYS = 30;
export const DAY_MS = 86_400_000;

/** How often a key called an operation on one day. */
export interface Usage {
  /** In UTC, as YYYY-MM-DD */
  readonly day: string;
  readonly operation: string;
  readonly requests: number;
}

export interface KeyUsage extends Usage {
  readonly apiKeyId: string;
}

export type UsageStore = ReturnType<typeof createUsageStore>;

/** Rows are inserted in primary-key order, so that concurrent flushes from several nodes cannot deadlock. */
const ADD = `
  INSERT INTO api_key_usage (api_key_id, day, operation, requests)
  SELECT added.* FROM unnest($1::uuid[], $2::date[], $3::text[], $4::bigint[])
    AS added (api_key_id, day, operation, requests)
  JOIN api_keys ON api_keys.id = added.api_key_id
  ORDER BY 1, 2, 3
  ON CONFLICT (api_key_id, day, operation)
  DO UPDATE SET requests = least(api_key_usage.requests + excluded.requests, 9007199254740991)`;

const READ = `
  SELECT day::text, operation, requests::float8 AS requests FROM api_key_usage
  WHERE api_key_id = $1 AND day >= $2 ORDER BY day, operation COLLATE "C"`;

const READ_TOTALS = `
  SELECT operation, sum(requests)::float8 AS requests FROM api_key_usage
  WHERE api_key_id = $1 AND day >= $2 GROUP BY operation ORDER BY operation COLLATE "C"`;

/** All queries on usage. `now` is in Unix milliseconds. */
export function createUsageStore({ pool }: Pick<Connections, 'pool'>) {
  return {
    /** Adds to the stored counts, all rows or none. Rows of a key that no longer exists are skipped. */
    async add(rows: readonly KeyUsage[]) {
      await pool.query(ADD, [
        rows.map(({ apiKeyId }) => apiKeyId),
        rows.map(({ day }) => day),
        rows.map(({ operation }) => operation),
        rows.map(({ requests }) => requests),
      ]);
    },
    /** The calls of a key in the last 30 days, by day and operation; days without a call are left out. */
    async read(apiKeyId: string, now: number) {
      const { rows } = await pool.query<Usage>(READ, [apiKeyId, firstDay(now)]);
      return rows;
    },
    /** The calls of a key in the last 30 days by operation, in the order of their names. */
    async readTotals(apiKeyId: string, now: number) {
      const { rows } = await pool.query<Omit<Usage, 'day'>>(READ_TOTALS, [apiKeyId, firstDay(now)]);
      return rows;
    },
    /** Deletes counts that are older than 30 days. */
    async deleteExpired(now: number) {
      await pool.query('DELETE FROM api_key_usage WHERE day < $1', [firstDay(now)]);
    },
  };
}

/** The UTC day of a moment, as YYYY-MM-DD. */
export function toDay(now: number): string {
  return new Date(now).toISOString().slice(0, 10);
}

function firstDay(now: number): string {
  return toDay(now - (USAGE_DAYS - 1) * DAY_MS);
}
