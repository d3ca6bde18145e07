import pg from 'pg';
import type { Database } from '../connections/client.js';
import { toDatabaseError } from '../connections/outage.js';
import { OperatorError } from '../operator-errors/operator-error.js';
import { TURNS_TABLE } from './insert-statements.js';

/**
 * The tables that lack their row of insert_turns. Knows the tables of `createInsert` and `createClaimingInsert`, but not those
 * that a transaction takes the turn of.
 */
export async function findMissingTurns({ pool, writes, inSchema }: Database): Promise<string[]> {
  const find = `SELECT name FROM unnest($1::text[]) AS name WHERE name NOT IN (SELECT table_name FROM ${inSchema(TURNS_TABLE)})`;
  const { rows } = await pool.query<{ name: string }>(find, [writes.listTurns()]).catch((error: unknown) => {
    throw toDatabaseError(error);
  });
  return rows.map(({ name }) => name);
}

/** The statement that adds their rows. @param turns the name of insert_turns */
export const addTurnsSql = (tables: readonly string[], turns: string): string =>
  `INSERT INTO ${turns} (table_name) VALUES ${tables.map((name) => `(${pg.escapeLiteral(name)})`).join(', ')};`;

/**
 * Rejects when a table lacks its row of insert_turns, without which each create there would fail.
 *
 * @throws OperatorError with the statement that adds the rows
 */
export async function checkTurns(database: Database): Promise<void> {
  const tables = await findMissingTurns(database);
  if (tables.length === 0) return;
  throw new OperatorError(
    `The database lacks the turn of ${tables.join(', ')}, without which nothing can be created there. ` +
      `Add it in a migration, or as the owner, with: ${addTurnsSql(tables, database.inSchema(TURNS_TABLE))}`,
  );
}
