import type { Queries } from '../connections/connections.js';

/** How many rows one statement deletes: few enough to stay well within STATEMENT_TIMEOUT_MS. */
const BATCH_SIZE = 1_000;

/**
 * Deletes a batch of the oldest rows of a table. Two nodes that delete the same rows at once wait for each other, and one
 * of them finds none left. Deleting by row address has the same plan however large the table is.
 *
 * @param table with its schema, quoted
 * @param column when a row was written; has an index
 * @param isOld a condition on that column
 */
export const deleteOldSql = (table: string, column: string, isOld: string) => `
  DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM ${table} WHERE ${isOld} ORDER BY ${column} LIMIT ${BATCH_SIZE}))`;

/** Runs a statement of `deleteOldSql` until there is no old row left. */
export async function deleteOld(
  { pool }: Queries,
  sql: string,
  ...values: readonly unknown[]
): Promise<void> {
  while ((await pool.query(sql, [...values])).rowCount === BATCH_SIZE);
}
