import type { InSchema } from '../connections/schema-name.js';
import { type IdempotencyKey, insertKeySql, KEY_COLUMNS, keySql } from './idempotency.js';
import { type InsertColumn, type TableSql, typeSql } from './table.js';

/** The table of turns. Its migration says what a row is for. */
export const TURNS_TABLE = 'insert_turns';

/**
 * Holds the turn of a table that is listed by id until the transaction is visible. Ids that are drawn afterwards become
 * visible in their order. Returns no row if the table's migration has not added one.
 *
 * @param condition SQL, with AND before it, that is evaluated before the turn is taken
 */
export const takeTurnSql = (tableName: string, inSchema: InSchema, condition = '') =>
  `SELECT 1 FROM ${inSchema(TURNS_TABLE)} WHERE table_name = '${tableName}'${condition} FOR UPDATE`;

/**
 * The calls of a batch as a table `given` with their positions, `row_position`, from one JSON parameter. JSON depends
 * neither on settings of the session nor on types of the schema, which a restore may replace by others of the same name.
 */
export function givenSql(
  columns: readonly Pick<InsertColumn, 'field' | 'type'>[],
  inSchema: InSchema,
): string {
  const fields = columns.map(({ field }) => field).join(', ');
  const types = columns.map(({ field, type }) => `${field} ${typeSql(type, inSchema)}`).join(', ');
  return `ROWS FROM (json_to_recordset($1) AS (${types})) WITH ORDINALITY AS given (${fields}, row_position)`;
}

/**
 * The INSERT, to which further tables and conditions may be added. The join has no row before the turn of the table is
 * taken, so no id is drawn before. With ORDER BY row_position, ids ascend in the order of the rows.
 */
function insertSql({ name, insertColumns }: TableSql, inSchema: InSchema): string {
  return `
    INSERT INTO ${inSchema(name)} (${insertColumns.map(({ column }) => column).join(', ')})
    SELECT ${insertColumns.map(({ field }) => field).join(', ')} FROM (${takeTurnSql(name, inSchema)}) AS turn`;
}

/**
 * SQL: true if every row was inserted. If not, it raises an error that says why, and nothing is stored, because we could not
 * tell which caller's row is missing. A failing cast is PostgreSQL's only way to raise an error from within a statement.
 */
export const isCompleteSql = (given: string) => `
  (SELECT CASE count(*) WHEN ${given} THEN true ELSE (count(*) || ' of ' || ${given} ||
     ' rows were inserted: a trigger leaves rows out, or insert_turns lacks the table')::boolean END FROM created)`;

/** The result has no certain order. */
export function rowsSql(table: TableSql, inSchema: InSchema): string {
  return `
    WITH created AS (
      ${insertSql(table, inSchema)}, ${givenSql(table.insertColumns, inSchema)}
      ORDER BY row_position
      RETURNING id, ${table.json} AS output
    )
    SELECT id, output FROM created WHERE ${isCompleteSql('json_array_length($1)')}`;
}

/** Adds a prefix, because a table may have columns of these names. */
export const toKeyField = (column: string) => `request_${column}`;
/** The columns that createKeyedRowLoader adds to a row. */
const KEY_OF_ROW: readonly InsertColumn[] = KEY_COLUMNS.map(([column, type]) => ({
  column,
  field: toKeyField(column),
  type,
}));

/** The types of these columns, by name */
export const KEY_TYPES: Readonly<Record<string, string>> = Object.fromEntries(
  KEY_OF_ROW.map(({ field, type }) => [field, type]),
);

/**
 * Of several rows with one key in a statement, only the first is inserted, because a lock does not exclude its own session.
 * A row without output was not inserted: its key is already stored, or another create with the key is running. For a table
 * `boats` with a column `name`:
 *
 *     WITH requested AS MATERIALIZED (
 *       SELECT *, row_number() OVER (
 *           PARTITION BY request_api_key_id, request_key, request_operation, request_batch_index ORDER BY row_position
 *         ) = 1 AND pg_try_advisory_xact_lock(hashtextextended(concat_ws(
 *           ' ', request_api_key_id, request_key, request_operation, request_batch_index
 *         ), 0)) AS is_locked,
 *         (
 *           SELECT true FROM "public"."idempotent_creates" WHERE (api_key_id, key, operation, batch_index)
 *             = (request_api_key_id, request_key, request_operation, request_batch_index)
 *         ) IS TRUE AS is_stored
 *       FROM ROWS FROM (json_to_recordset($1) AS (
 *           "name" text, request_api_key_id uuid, request_key text, request_operation text,
 *           request_batch_index smallint, request_body_hash bytea
 *         )) WITH ORDINALITY AS given (
 *           "name", request_api_key_id, request_key, request_operation, request_batch_index, request_body_hash,
 *           row_position
 *         )
 *     ), to_insert AS MATERIALIZED (
 *       SELECT *, row_number() OVER (ORDER BY row_position) AS row_rank FROM requested WHERE is_locked AND NOT is_stored
 *     ), created AS (
 *       INSERT INTO "public"."boats" ("name")
 *       SELECT "name"
 *       FROM (SELECT 1 FROM "public"."insert_turns" WHERE table_name = 'boats' FOR UPDATE) AS turn, to_insert
 *       ORDER BY row_position
 *       RETURNING id, json_build_object('id', "id", 'name', "name") AS output
 *     ), inserted AS MATERIALIZED (
 *       SELECT to_insert.*, output FROM to_insert
 *       JOIN (SELECT output, row_number() OVER (ORDER BY id) AS row_rank FROM created) AS ranked USING (row_rank)
 *     ), remembered AS (
 *       INSERT INTO "public"."idempotent_creates" (api_key_id, key, operation, batch_index, body_hash, response)
 *       SELECT request_api_key_id, request_key, request_operation, request_batch_index, request_body_hash, output
 *       FROM inserted
 *     )
 *     SELECT requested.is_stored, inserted.output FROM requested LEFT JOIN inserted USING (row_position)
 *     WHERE (
 *       SELECT CASE count(*) WHEN (SELECT count(*) FROM to_insert) THEN true
 *         ELSE (count(*) || ' of ' || (SELECT count(*) FROM to_insert)
 *           || ' rows were inserted: a trigger leaves rows out, or insert_turns lacks the table')::boolean END
 *       FROM created
 *     ) ORDER BY row_position
 */
export function keyedRowsSql(table: TableSql, inSchema: InSchema): string {
  const key = keySql(inSchema, toKeyField);
  const given = givenSql([...table.insertColumns, ...KEY_OF_ROW], inSchema);
  return `
    WITH requested AS MATERIALIZED (
      SELECT *, row_number() OVER (PARTITION BY ${key.id} ORDER BY row_position) = 1
        AND pg_try_advisory_xact_lock(${key.lock}) AS is_locked, ${key.isStored} AS is_stored
      FROM ${given}
    ), to_insert AS MATERIALIZED (
      SELECT *, row_number() OVER (ORDER BY row_position) AS row_rank FROM requested WHERE is_locked AND NOT is_stored
    ), created AS (
      ${insertSql(table, inSchema)}, to_insert
      ORDER BY row_position
      RETURNING id, ${table.json} AS output
    ), inserted AS MATERIALIZED (
      SELECT to_insert.*, output
      FROM to_insert JOIN (SELECT output, row_number() OVER (ORDER BY id) AS row_rank FROM created) AS ranked USING (row_rank)
    ), remembered AS (
      ${insertKeySql(inSchema)} SELECT ${KEY_OF_ROW.map(({ field }) => field).join(', ')}, output FROM inserted
    )
    SELECT requested.is_stored, inserted.output
    FROM requested LEFT JOIN inserted USING (row_position)
    WHERE ${isCompleteSql('(SELECT count(*) FROM to_insert)')} ORDER BY row_position`;
}

/** The members of KEY_OF_ROW, for the JSON of a row. */
export function toKeyMembers(key: IdempotencyKey): Record<string, unknown> {
  const toJson = (value: unknown) =>
    value instanceof Uint8Array ? `\\x${Buffer.from(value).toString('hex')}` : value;
  return Object.fromEntries(
    KEY_COLUMNS.map(([column, , member]) => [toKeyField(column), toJson(key[member])]),
  );
}
