import pg from 'pg';
import type { Connections } from '../database/connections.js';
import type { InSchema } from '../database/schema-name.js';

/** After this many changes at once, any key may have changed. */
export const MAX_CHANGES = 10_000;

interface ChangesRow {
  readonly source: string;
  /** A bigint */
  readonly nextSince: string;
  readonly changes: readonly { readonly id: string; readonly transaction: number }[];
}

/** The number of the oldest transaction that has not ended. */
const OLDEST_RUNNING =
  'pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())::pg_catalog.text::bigint';
/** The number that the next transaction gets. */
const NEXT = 'pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())::pg_catalog.text::bigint';

/** Identifies the table, also where a database was copied, or took the name of another one, under a running server. */
const sourceSql = (inSchema: InSchema) => `
  pg_catalog.concat_ws(' ', (SELECT system_identifier FROM pg_catalog.pg_control_system()),
    (extract(epoch FROM pg_catalog.pg_postmaster_start_time()) * 1000000)::bigint,
    (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()),
    ${pg.escapeLiteral(inSchema('api_keys'))}::pg_catalog.regclass::pg_catalog.oid)`;

function createStatements(inSchema: InSchema) {
  const changes = inSchema('api_key_changes');
  return {
    /** Rows of a backup may have numbers that this database has not come to yet. */
    readChanges: {
      name: 'keys-changes',
      text: `
        SELECT ${sourceSql(inSchema)} AS source, ${OLDEST_RUNNING} AS "nextSince",
          coalesce((SELECT pg_catalog.json_agg(change) FROM (
            SELECT api_key_id AS id, transaction FROM ${changes}
            WHERE transaction >= $1::bigint AND transaction < ${NEXT}
            ORDER BY transaction LIMIT ${MAX_CHANGES + 1}
          ) AS change), '[]') AS changes`,
      emptyValues: [Number.MAX_SAFE_INTEGER],
    },
    /**
     * Deletes the changes by transactions that had ended at an earlier moment, `$1`, and returns the number of the oldest
     * that has not ended now. A date would not do: a prepared transaction may end days after it made its change.
     */
    deleteOldChanges: `
      WITH deleted AS (DELETE FROM ${changes} WHERE transaction < $1::bigint)
      SELECT ${OLDEST_RUNNING} AS "oldestRunning"`,
  };
}

/** Every method may fail with a database error: see isDatabaseOutage. */
export type KeyChangeStore = ReturnType<typeof createKeyChangeStore>;

/** All queries on the changes of keys, which triggers write. */
export function createKeyChangeStore({
  pool,
  keys,
  inSchema,
}: Pick<Connections, 'pool' | 'keys' | 'inSchema'>) {
  const sql = createStatements(inSchema);
  keys.register(sql.readChanges);
  let endedBefore = '0';
  return {
    /**
     * The changes of keys by the transactions from a number on, and the number to ask from next. `source` is another
     * when the numbers are those of another server or table.
     */
    async readChanges(since: number) {
      const [answer] = await keys.query<ChangesRow>(sql.readChanges, [since]);
      const { nextSince, ...rest } = answer as ChangesRow;
      return { ...rest, nextSince: Number(nextSince) };
    },
    /**
     * Deletes the changes whose transactions had ended when this was called the time before: let that be long ago, so that
     * every process has asked for them. The first call of a process deletes none.
     */
    async deleteOldChanges() {
      const { rows } = await pool.query<{ oldestRunning: string }>(sql.deleteOldChanges, [endedBefore]);
      endedBefore = rows[0]?.oldestRunning ?? '0';
    },
  };
}
