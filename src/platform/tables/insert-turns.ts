import type { InSchema } from '../connections/schema-name.js';

/** The table of turns. Its migration says what a row is for. */
const TURNS_TABLE = 'insert_turns';

/**
 * Locks the row of a table that is listed by its ids, until the transaction is visible. Ids that are drawn afterwards
 * become visible in their order. Returns no row if the table's migration has not added one.
 */
export const takeTurnSql = (tableName: string, inSchema: InSchema) =>
  `SELECT 1 FROM ${inSchema(TURNS_TABLE)} WHERE table_name = '${tableName}' FOR UPDATE`;
