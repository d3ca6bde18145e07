import type { IdempotencyKey } from './idempotency.js';

/** How the rows of a table are made. The table's key is an identity column named `id`. */
export interface Inserts<Input> {
  readonly table: string;
  /** The type of each column that is set. */
  readonly columns: Readonly<Record<string, string>>;
  /** The values of these columns, in this order. */
  toValues(input: Input): readonly unknown[];
  /** The output of the operation, as a JSON expression over the columns of the new row. */
  readonly returning: string;
}

/** One row, with a parameter for each value. `insertSql`, for several, takes PostgreSQL 10 % longer. */
export function insertOneSql({ table, columns, returning }: Inserts<never>): string {
  const parameters = Object.values(columns).map((type, index) => `$${index + 1}::${type}`);
  return `
    INSERT INTO ${table} (${Object.keys(columns).join(', ')})
    VALUES (${parameters.join(', ')})
    RETURNING id, ${returning} AS output`;
}

/**
 * The ids ascend in the order of the rows, because PostgreSQL assigns them after it has sorted what it inserts. What it
 * returns has no certain order.
 */
export function insertSql({ table, columns, returning }: Inserts<never>): string {
  const names = Object.keys(columns).join(', ');
  return `
    INSERT INTO ${table} (${names})
    SELECT ${names} FROM ${unnest(columns)} ORDER BY row_position
    RETURNING id, ${returning} AS output`;
}

/** With a prefix, because a table may have columns of these names. */
const KEY_COLUMNS = {
  once_api_key_id: 'uuid',
  once_operation: 'text',
  once_key: 'text',
  once_call: 'smallint',
  once_body_hash: 'bytea',
  once_created_at: 'timestamptz',
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
export function insertOnceSql({ table, columns, returning }: Inserts<never>): string {
  const names = Object.keys(columns).join(', ');
  const keyNames = Object.keys(KEY_COLUMNS);
  const keyId = 'once_api_key_id, once_key, once_operation, once_call';
  return `
    WITH wanted AS MATERIALIZED (
      SELECT *, row_number() OVER (PARTITION BY ${keyId} ORDER BY row_position) = 1
        AND pg_try_advisory_xact_lock(
          hashtextextended(concat_ws(' ', once_api_key_id, once_operation, once_call, once_key), 0)
        ) AS is_locked, EXISTS (
          SELECT FROM idempotent_creates AS stored
          WHERE (stored.api_key_id, stored.key, stored.operation, stored.call) = (${keyId})
        ) AS is_stored
      FROM ${unnest({ ...columns, ...KEY_COLUMNS })}
    ), new AS MATERIALIZED (
      SELECT *, row_number() OVER (ORDER BY row_position) AS row_rank FROM wanted
      WHERE is_locked AND NOT is_stored
    ), created AS (
      INSERT INTO ${table} (${names}) SELECT ${names} FROM new ORDER BY row_position
      RETURNING id, ${returning} AS output
    ), done AS MATERIALIZED (
      SELECT new.*, output
      FROM new JOIN (SELECT output, row_number() OVER (ORDER BY id) AS row_rank FROM created) AS ranked USING (row_rank)
    ), stored AS (
      INSERT INTO idempotent_creates (${keyNames.map((name) => name.replace('once_', '')).join(', ')}, response)
      SELECT ${keyNames.join(', ')}, output FROM done
    )
    SELECT wanted.is_stored, done.output FROM wanted LEFT JOIN done USING (row_position) ORDER BY row_position`;
}

/** A table of rows from one array per column. */
function unnest(columns: Readonly<Record<string, string>>): string {
  const arrays = Object.values(columns).map((type, index) => `$${index + 1}::${type}[]`);
  return `unnest(${arrays.join(', ')}) WITH ORDINALITY AS given (${Object.keys(columns).join(', ')}, row_position)`;
}

export function toColumns(rows: readonly (readonly unknown[])[]): unknown[][] {
  return (rows[0] ?? []).map((_, column) => rows.map((row) => row[column]));
}
