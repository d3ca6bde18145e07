import type { IdempotencyKey } from './idempotency.js';
import type { TableSql } from './table.js';

/**
 * The ids ascend in the order of the rows, because PostgreSQL assigns them after it has sorted what it inserts. What it
 * returns has no certain order.
 */
export function rowsSql({ name, insertColumns, json }: TableSql): string {
  const columns = Object.keys(insertColumns).join(', ');
  return `
    INSERT INTO ${name} (${columns})
    SELECT ${columns} FROM ${unnest(insertColumns)} ORDER BY row_position
    RETURNING id, ${json} AS output`;
}

/** With a prefix, because a table may have columns of these names. */
const KEY_COLUMNS = {
  request_api_key_id: 'uuid',
  request_operation: 'text',
  request_key: 'text',
  request_call: 'smallint',
  request_body_hash: 'bytea',
  request_created_at: 'timestamptz',
};

export function keyValues({
  apiKeyId,
  operation,
  batchIndex,
  header,
  receivedAt,
}: IdempotencyKey): unknown[] {
  return [apiKeyId, operation, header.value, batchIndex, header.bodyHash, new Date(receivedAt)];
}

/**
 * Of several rows with one key in a statement, only the first is inserted; a lock does not exclude its own session. A row
 * without output was not inserted: its key is stored already, or another create with it is running.
 */
export function keyedRowsSql({ name, insertColumns, json }: TableSql): string {
  const columns = Object.keys(insertColumns).join(', ');
  const keyColumns = Object.keys(KEY_COLUMNS);
  const keyId = 'request_api_key_id, request_key, request_operation, request_call';
  return `
    WITH requested AS MATERIALIZED (
      SELECT *, row_number() OVER (PARTITION BY ${keyId} ORDER BY row_position) = 1
        AND pg_try_advisory_xact_lock(
          hashtextextended(concat_ws(' ', request_api_key_id, request_operation, request_call, request_key), 0)
        ) AS is_locked, EXISTS (
          SELECT FROM idempotent_creates AS stored
          WHERE (stored.api_key_id, stored.key, stored.operation, stored.call) = (${keyId})
        ) AS is_stored
      FROM ${unnest({ ...insertColumns, ...KEY_COLUMNS })}
    ), to_insert AS MATERIALIZED (
      SELECT *, row_number() OVER (ORDER BY row_position) AS row_rank FROM requested
      WHERE is_locked AND NOT is_stored
    ), created AS (
      INSERT INTO ${name} (${columns}) SELECT ${columns} FROM to_insert ORDER BY row_position
      RETURNING id, ${json} AS output
    ), inserted AS MATERIALIZED (
      SELECT to_insert.*, output
      FROM to_insert JOIN (SELECT output, row_number() OVER (ORDER BY id) AS row_rank FROM created) AS ranked
      USING (row_rank)
    ), remembered AS (
      INSERT INTO idempotent_creates (${keyColumns.map((column) => column.replace('request_', '')).join(', ')}, response)
      SELECT ${keyColumns.join(', ')}, output FROM inserted
    )
    SELECT requested.is_stored, inserted.output
    FROM requested LEFT JOIN inserted USING (row_position) ORDER BY row_position`;
}

/** A table of rows from one array per column. */
function unnest(columns: Readonly<Record<string, string>>): string {
  const arrays = Object.values(columns).map((type, index) => `$${index + 1}::${type}[]`);
  return `unnest(${arrays.join(', ')}) WITH ORDINALITY AS given (${Object.keys(columns).join(', ')}, row_position)`;
}

export function toColumns(rows: readonly (readonly unknown[])[]): unknown[][] {
  return (rows[0] ?? []).map((_, column) => rows.map((row) => row[column]));
}
