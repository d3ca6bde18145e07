import type { InSchema } from '../connections/schema-name.js';
import { insertKeySql, keySql } from './idempotency.js';
import { isCompleteSql, KEY_TYPES, takeTurnSql, toKeyField } from './insert-statements.js';
import type { StatementParts } from './row-statements.js';
import type { Table } from './table.js';

/** A row of another table that a new row takes for itself, as an order takes its animal. */
export interface Claim<Row, NewRow extends Partial<Row>> {
  /** The fields that are inserted. Other columns get their defaults */
  readonly fields: readonly (keyof NewRow & keyof Row & string)[];
  /** The table whose rows are claimed */
  readonly table: string;
  /** The field of the new row that holds the id of the claimed row */
  readonly by: keyof NewRow & keyof Row & string;
  /** SQL on the columns of the claimed row: whether it is free. A row may be free more than once, as with `left > 0` */
  readonly isFree: string;
  /** SQL: what the claimed row becomes */
  readonly set: string;
  /** The error for a row that is not free, or does not exist */
  refuse(row: NewRow, isThere: boolean): Error;
}

/**
 * The statement of a claiming insert. It sees locked rows as they are now, and all others as when it began. So `isFree` decides
 * by the current row, while a key may have been stored since. The turn comes last, so that nobody holds it while waiting for a
 * row.
 *
 * Idempotency-Keys are handled as in keyedRowsSql. The statement without them, for `tickets` that claim `seats`:
 *
 *     WITH requested AS MATERIALIZED (
 *       SELECT *, false AS is_running, false AS is_stored FROM …
 *     ), locked AS MATERIALIZED (
 *       SELECT id AS locked_id, (taken = 0) AS is_free FROM "public"."seats"
 *       WHERE id IN (SELECT "seatId" FROM requested WHERE NOT is_running AND NOT is_stored) FOR UPDATE SKIP LOCKED
 *     ), claimed AS (
 *       UPDATE "public"."seats" AS claiming SET taken = taken + 1 FROM locked
 *       WHERE claiming.id = locked_id AND is_free RETURNING locked_id
 *     ), to_insert AS MATERIALIZED (
 *       SELECT DISTINCT ON ("seatId") requested.* FROM requested JOIN claimed ON locked_id = "seatId"
 *       WHERE NOT is_running AND NOT is_stored ORDER BY "seatId", row_position
 *     ), created AS (
 *       INSERT INTO "public"."tickets" ("seat_id", "holder", "note")
 *       SELECT "seatId", "holder", "note" FROM (
 *         SELECT 1 FROM "public"."insert_turns"
 *         WHERE table_name = 'tickets' AND (SELECT count(*) FROM to_insert) > 0 FOR UPDATE
 *       ) AS turn, to_insert
 *       ORDER BY row_position
 *       RETURNING "seat_id" AS created_for, json_build_object(
 *         'id', "id", 'seatId', "seat_id", 'holder', "holder", 'note', "note", 'color', "color"
 *       ) AS output
 *     )
 *     SELECT requested.is_running, requested.is_stored, locked_id IS NOT NULL AS is_locked, is_free,
 *       locked_id IS NOT NULL OR (SELECT true FROM "public"."seats" WHERE id = requested."seatId") IS TRUE AS is_there,
 *       output
 *     FROM requested LEFT JOIN locked ON locked_id = requested."seatId"
 *       LEFT JOIN to_insert USING (row_position) LEFT JOIN created ON created_for = to_insert."seatId"
 *     WHERE (
 *       SELECT CASE count(*) WHEN (SELECT count(*) FROM to_insert) THEN true
 *         ELSE (count(*) || ' of ' || (SELECT count(*) FROM to_insert)
 *           || ' rows were inserted: a trigger leaves rows out, or insert_turns lacks the table')::boolean END
 *       FROM created
 *     ) ORDER BY row_position
 */
export function claimSql<Row, NewRow extends Partial<Row>>(
  { name, toColumn, json }: Pick<Table<Row, never>, 'name' | 'toColumn' | 'json'>,
  { fields, table: claimedTable, by, isFree, set }: Claim<Row, NewRow>,
  isKeyed: boolean,
  inSchema: InSchema,
  { given, lock }: StatementParts,
): string {
  const key = keySql(inSchema, toKeyField);
  const keyState = `
    NOT (row_number() OVER (PARTITION BY ${key.id} ORDER BY row_position) = 1 AND pg_try_advisory_xact_lock(${key.lock}))
      AS is_running,
    ${key.isStored} AS is_stored`;
  const turn = takeTurnSql(name, inSchema, ' AND (SELECT count(*) FROM to_insert) > 0');
  const remembered = `, remembered AS (
      ${insertKeySql(inSchema)}
      SELECT ${Object.keys(KEY_TYPES).join(', ')}, output FROM to_insert JOIN created ON created_for = "${by}"
    )`;
  return `
    WITH requested AS MATERIALIZED (
      SELECT *, ${isKeyed ? keyState : 'false AS is_running, false AS is_stored'} FROM ${given}
    ), locked AS MATERIALIZED (
      SELECT id AS locked_id, (${isFree}) AS is_free FROM ${inSchema(claimedTable)}
      WHERE id IN (SELECT "${by}" FROM requested WHERE NOT is_running AND NOT is_stored) ${lock}
    ), claimed AS (
      UPDATE ${inSchema(claimedTable)} AS claiming SET ${set} FROM locked
      WHERE claiming.id = locked_id AND is_free RETURNING locked_id
    ), to_insert AS MATERIALIZED (
      SELECT DISTINCT ON ("${by}") requested.* FROM requested JOIN claimed ON locked_id = "${by}"
      WHERE NOT is_running AND NOT is_stored ORDER BY "${by}", row_position
    ), created AS (
      INSERT INTO ${inSchema(name)} (${fields.map(toColumn).join(', ')})
      SELECT ${fields.map((field) => `"${field}"`).join(', ')} FROM (${turn}) AS turn, to_insert
      ORDER BY row_position
      RETURNING ${toColumn(by)} AS created_for, ${json} AS output
    )${isKeyed ? remembered : ''}
    SELECT requested.is_running, requested.is_stored, locked_id IS NOT NULL AS is_locked, is_free,
      locked_id IS NOT NULL OR (SELECT true FROM ${inSchema(claimedTable)} WHERE id = requested."${by}") IS TRUE AS is_there,
      output
    FROM requested LEFT JOIN locked ON locked_id = requested."${by}"
      LEFT JOIN to_insert USING (row_position) LEFT JOIN created ON created_for = to_insert."${by}"
    WHERE ${isCompleteSql('(SELECT count(*) FROM to_insert)')} ORDER BY row_position`;
}
