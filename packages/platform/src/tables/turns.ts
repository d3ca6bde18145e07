import pg from 'pg';
import type { Database } from '../connections/client.js';
import { toDatabaseError } from '../connections/outage.js';
import { OperatorError } from '../errors/operator-error.js';
import { TURNS_TABLE } from './insert-statements.js';

/**
 * Rejects when a table lacks its row of insert_turns, without which each create there would fail. Knows the tables of
 * `createInsert` and `createClaimingInsert`, but not those that a transaction takes the turn of.
 *
 * @throws OperatorError with the statement that adds the rows
 */
export async function checkTurns({ pool, writes, inSchema }: Database): Promise<void> {
  const turns = inSchema(TURNS_TABLE);
  const find = `SELECT name FROM unnest($1::text[]) AS name WHERE name NOT IN (SELECT table_name FROM ${turns})`;
  const { rows } = await pool.query<{ name: string }>(find, [writes.listTurns()]).catch((error: unknown) => {
    throw toDatabaseError(error);
  });
  if (rows.length === 0) return;
  const values = rows.map(({ name }) => `(${pg.escapeLiteral(name)})`).join(', ');
  throw new OperatorError(
    `The database lacks the turn of ${rows.map(({ name }) => name).join(', ')}, without which nothing can be created there. ` +
      `Add it in a migration, or as the owner, with: INSERT INTO ${turns} (table_name) VALUES ${values};`,
  );
}
