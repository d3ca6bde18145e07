import type { Connections } from '../database/connections.js';

/** After this many changes at once, any key may have changed. */
export const MAX_CHANGES = 10_000;

interface ChangesRow {
  readonly source: string;
  readonly nextSince: number;
  readonly changes: readonly { readonly id: string; readonly transaction: number }[];
}

/** Identifies the table, also where a database was copied, or took the name of another one, under a running server. */
const SOURCE = `
  concat_ws(' ', (SELECT system_identifier FROM pg_control_system()),
    extract(epoch FROM pg_postmaster_start_time()),
    (SELECT oid FROM pg_database WHERE datname = current_database()), 'api_keys'::regclass::oid)`;

/** Rows of a backup may have numbers that this database has not come to yet. */
const READ_CHANGES = {
  name: 'keys-changes',
  text: `
    SELECT ${SOURCE} AS source,
      pg_snapshot_xmin(pg_current_snapshot())::text::float8 AS "nextSince",
      coalesce((SELECT json_agg(change) FROM (
        SELECT api_key_id AS id, transaction FROM api_key_changes
        WHERE transaction >= $1::bigint AND transaction < pg_snapshot_xmax(pg_current_snapshot())::text::bigint
        ORDER BY transaction LIMIT ${MAX_CHANGES + 1}
      ) AS change), '[]') AS changes`,
};

/**
 * Deletes the changes by transactions that had ended at an earlier moment, `$1`, and returns the number of the oldest that
 * has not ended now. A date would not do: a prepared transaction may end days after it made its change.
 */
const DELETE_OLD_CHANGES = `
  WITH deleted AS (DELETE FROM api_key_changes WHERE transaction < $1::bigint)
  SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS "oldestRunning"`;

/** Every method may fail with a database error: see isDatabaseOutage. */
export type KeyChangeStore = ReturnType<typeof createKeyChangeStore>;

/** All queries on the changes of keys, which triggers write. */
export function createKeyChangeStore({ pool, keys }: Pick<Connections, 'pool' | 'keys'>) {
  let endedBefore = '0';
  return {
    /**
     * The changes of keys by the transactions from a number on, and the number to ask from next. `source` is another
     * when the numbers are those of another server or table.
     */
    async readChanges(since: number) {
      const [answer] = await keys.query<ChangesRow>(READ_CHANGES, [since]);
      return answer as ChangesRow;
    },
    /**
     * Deletes the changes whose transactions had ended when this was called the time before: let that be long ago, so that
     * every process has asked for them. The first call of a process deletes none.
     */
    async deleteOldChanges() {
      const { rows } = await pool.query<{ oldestRunning: string }>(DELETE_OLD_CHANGES, [endedBefore]);
      endedBefore = rows[0]?.oldestRunning ?? '0';
    },
  };
}
