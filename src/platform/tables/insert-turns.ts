import type { InSchema } from '../connections/schema-name.js';

/** The table of turns. Its migration says what a row is for. */
const TURNS_TABLE = 'insert_turns';

/**
 * Locks the row of a table that is listed by its ids, until the transaction is visible. Ids that are drawn after it become
 * visible in their order. No row: the migration of that table has not added it.
 */
export const takeTurnSql = (tableName: string, inSchema: InSchema) =>
  `SELECT 1 FROM ${inSchema(TURNS_TABLE)} WHERE table_name = '${tableName}' FOR UPDATE`;
