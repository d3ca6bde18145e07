import type pg from 'pg';
import type { OperatorError } from '../operator-errors/operator-error.js';
import { type IndexStatement, readIndexStatement } from './index-statement.js';
import {
  failedEarlier,
  type Migration,
  type RecordedMigration,
  readSoleIndex,
  toFailure,
} from './migrations.js';

/** PostgreSQL folds the name, or leaves it as it is in quotes, as it does in the statement. */
const FIND_INDEX = `
  SELECT indisvalid AS "isValid", format('%I.%I', nspname, relname) AS name
  FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace
  WHERE indexrelid = to_regclass($1)`;

/** What has become of a migration that creates or drops an index concurrently, and did not finish. */
type Outcome =
  | { readonly kind: 'applied' | 'not applied' }
  /** The creation broke off. PostgreSQL keeps such an index up to date, and never reads it. */
  | { readonly kind: 'invalid'; readonly index: string };

/**
 * Settles the migrations that are neither finished nor rolled back, while no other session migrates: PostgreSQL goes on with the
 * statement of a process that was killed, whose session keeps the lock of migrations until then.
 *
 * @returns the names of those that turn out to be applied, and are recorded as such. All others are to be applied anew.
 * @throws OperatorError when one left an invalid index, or something else than a single index may be half done
 */
export async function settleUnfinished(
  client: pg.Client,
  table: string,
  recorded: readonly RecordedMigration[],
  migrations: readonly Migration[],
): Promise<string[]> {
  const applied: string[] = [];
  for (const record of recorded.filter(({ isFinished }) => !isFinished)) {
    const statement = readSoleIndex(record, migrations);
    if (statement === undefined) throw failedEarlier(record.name);
    const outcome = await findOutcome(client, statement, record);
    if (outcome.kind === 'invalid') throw toIndexFailure(`${record.name} was not completed`, outcome.index);
    const isApplied = outcome.kind === 'applied';
    // As `prisma migrate resolve` records either.
    const change = isApplied
      ? 'finished_at = clock_timestamp(), applied_steps_count = 1'
      : 'rolled_back_at = clock_timestamp()';
    await client.query(
      `UPDATE ${table} SET ${change} WHERE migration_name = $1 AND finished_at IS NULL AND rolled_back_at IS NULL`,
      [record.name],
    );
    if (isApplied) applied.push(record.name);
  }
  return applied;
}

async function findOutcome(
  client: pg.Client,
  { kind, name }: IndexStatement,
  { isFailed }: RecordedMigration,
): Promise<Outcome> {
  const [index] = (await client.query<{ isValid: boolean; name: string }>(FIND_INDEX, [name])).rows;
  if (kind === 'create' && index?.isValid === false) return { kind: 'invalid', index: index.name };
  const isDone = (index !== undefined) === (kind === 'create');
  // After an error of PostgreSQL, what is there is not the statement's work.
  return { kind: isDone && !isFailed ? 'applied' : 'not applied' };
}

/**
 * The invalid index that a script has left, or that its `IF NOT EXISTS` has taken for created.
 *
 * @returns its name for SQL, or undefined if there is none
 */
export async function findInvalidIndex(client: pg.Client, script: string): Promise<string | undefined> {
  const statement = readIndexStatement(script);
  if (statement?.kind !== 'create') return undefined;
  const { rows } = await client.query<{ isValid: boolean; name: string }>(FIND_INDEX, [statement.name]);
  return rows.find(({ isValid }) => !isValid)?.name;
}

/** What an operator does about a migration of a single index. An invalid one, if it left that, has to go first. */
export function toIndexFailure(what: string, invalid?: string, cause?: unknown): OperatorError {
  const remedy = invalid && `drop the invalid index, with: DROP INDEX CONCURRENTLY ${invalid};`;
  return toFailure(what, { remedy, cause });
}
