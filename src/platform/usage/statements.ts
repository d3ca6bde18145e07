import type { InSchema } from '../database/schema-name.js';

/*
 * The SQL of usage. Days are UTC's.
 */

/** As YYYY-MM-DD in every DateStyle. */
const daySql = (day: string) => `pg_catalog.to_char(${day}, 'YYYY-MM-DD')`;

/** The first of the last `$1` days, today included, by the clock of the database. */
const FIRST_KEPT_DAY =
  "(pg_catalog.statement_timestamp() AT TIME ZONE 'UTC')::pg_catalog.date - $1::integer + 1";

const MAX_COUNT = Number.MAX_SAFE_INTEGER;

export function createStatements(inSchema: InSchema) {
  const [keys, usage, batches] = ['api_keys', 'api_key_usage', 'api_key_usage_batches'].map(inSchema);
  return {
    append: {
      name: 'usage-append',
      text: `
        INSERT INTO ${batches} (day, operation, api_key_ids, requests, denied)
        VALUES ($1::pg_catalog.date, $2, $3::pg_catalog.uuid[], $4::bigint[], $5::bigint[])`,
      emptyValues: ['2000-01-01', 'none', '{}', '{}', '{}'],
    },
    /** Those that begin with neighbouring keys come together, because nodes that share keys know of the same ones. */
    listBatches: {
      name: 'usage-list-batches',
      text: `SELECT id FROM ${batches} ORDER BY day, operation, first_api_key_id LIMIT $1::integer`,
      emptyValues: [0],
    },
    /**
     * Moves batches to api_key_usage, in the order of its primary key, so that nodes that do this at once cannot deadlock.
     * It waits for nobody who has locked a key or its usage: these rows are appended again, for the next period, as old as
     * the oldest was. Only a row of a new day refers to its key anew, so only then does the key have to be locked.
     */
    aggregate: {
      name: 'usage-aggregate',
      text: `
        WITH next AS (
          SELECT id FROM ${batches} WHERE id = ANY ($1::bigint[]) FOR UPDATE SKIP LOCKED
        ), taken AS (
          DELETE FROM ${batches} AS batch USING next WHERE batch.id = next.id RETURNING batch.*
        ), appended AS (
          SELECT pg_catalog.unnest(api_key_ids) AS api_key_id, day, operation, stored_at,
            pg_catalog.unnest(requests) AS requests, pg_catalog.unnest(denied) AS denied
          FROM taken
        ), totals AS (
          SELECT api_key_id, day, operation, pg_catalog.min(stored_at) AS stored_at,
            pg_catalog.sum(requests) AS requests, pg_catalog.sum(denied) AS denied
          FROM appended GROUP BY 1, 2, 3
        ), known AS (
          SELECT totals.*, usage.api_key_id IS NULL AS is_new FROM totals
          JOIN ${keys} AS keys ON keys.id = totals.api_key_id LEFT JOIN ${usage} AS usage USING (api_key_id, day, operation)
        ), free_keys AS (
          SELECT id FROM ${keys} WHERE id IN (SELECT api_key_id FROM known WHERE is_new) FOR KEY SHARE SKIP LOCKED
        ), free_rows AS (
          SELECT usage.api_key_id, usage.day, usage.operation FROM ${usage} AS usage
          JOIN (SELECT * FROM known WHERE NOT is_new OFFSET 0) AS old USING (api_key_id, day, operation)
          FOR NO KEY UPDATE OF usage SKIP LOCKED
        ), free AS (
          SELECT known.* FROM known JOIN free_keys ON free_keys.id = api_key_id WHERE is_new
          UNION ALL
          SELECT known.* FROM known JOIN free_rows USING (api_key_id, day, operation)
        ), moved AS (
          INSERT INTO ${usage} AS stored (api_key_id, day, operation, requests, denied)
          SELECT api_key_id, day, operation, least(requests, ${MAX_COUNT}), least(denied, ${MAX_COUNT})
          FROM free ORDER BY 1, 2, 3
          ON CONFLICT (api_key_id, day, operation) DO UPDATE
          SET requests = least(stored.requests + excluded.requests, ${MAX_COUNT}),
            denied = least(stored.denied + excluded.denied, ${MAX_COUNT})
        )
        INSERT INTO ${batches} (stored_at, day, operation, api_key_ids, requests, denied)
        SELECT pg_catalog.min(stored_at), day, operation, pg_catalog.array_agg(api_key_id),
          pg_catalog.array_agg(known.requests), pg_catalog.array_agg(known.denied)
        FROM known LEFT JOIN (SELECT api_key_id, day, operation, true AS is_free FROM free) AS moved
          USING (api_key_id, day, operation)
        WHERE is_free IS NULL GROUP BY day, operation`,
      emptyValues: ['{}'],
    },
    /** How long ago the oldest batch was appended, in seconds. */
    readAge: `
      SELECT coalesce(extract(epoch FROM pg_catalog.statement_timestamp() - pg_catalog.min(stored_at)), 0)::float8 AS seconds
      FROM ${batches}`,
    read: `
      SELECT ${daySql('day')} AS day, operation, requests, denied FROM ${usage} AS usage
      WHERE api_key_id = $1 AND usage.day BETWEEN $2 AND $3
      ORDER BY usage.day DESC, operation COLLATE pg_catalog."C"`,
    readStoredDays: `
      SELECT ${daySql('pg_catalog.min(day)')} AS "from", ${daySql('pg_catalog.max(day)')} AS "to" FROM ${usage}`,
    /** Of all keys if `$3` is null */
    readKeys: `
      SELECT id, name, owner, operation, pg_catalog.sum(requests) AS requests, pg_catalog.sum(denied) AS denied,
        ${daySql('pg_catalog.max(day)')} AS day
      FROM ${usage} JOIN ${keys} AS keys ON keys.id = api_key_id
      WHERE day BETWEEN $1 AND $2 AND ($3::pg_catalog.uuid[] IS NULL OR api_key_id = ANY ($3))
      GROUP BY id, operation`,
    deleteExpired: `
      WITH expired AS (SELECT ${FIRST_KEPT_DAY} AS before)
      DELETE FROM ${usage} USING expired WHERE day < before
        AND api_key_id IN (SELECT api_key_id FROM ${usage}, expired WHERE day >= before)`,
  };
}
