import { readUniqueViolation } from '../connections/outage.js';
import { type Claim, claimSql } from './claim-statement.js';
import { type CreateAttempt, createOrReplay } from './idempotency.js';
import { KEY_TYPES, toKeyMembers } from './insert-statements.js';
import type { Insert } from './inserts.js';
import { createRowStatement, type Postponed, type RowDatabase } from './row-statements.js';
import type { Table } from './table.js';

/** `taken`, `missing`: nothing was created. */
type Attempt<Row> = CreateAttempt<Row> | 'taken' | 'missing';

/**
 * Inserts rows each of which claims a free row of another table: both are stored, or neither. Of several claims of one row,
 * the first succeeds. Inserts that arrive while others are being stored share a statement. A claim of a locked row waits
 * alone: see createRowStatement. Idempotency keys work as in createInsert.
 */
export function createClaimingInsert<Row, NewRow extends Partial<Row> & object>(
  database: RowDatabase,
  table: Table<Row, never>,
  claim: Claim<Row, NewRow>,
): Insert<NewRow, Row> {
  const types = Object.fromEntries<string>(claim.fields.map((field) => [field, table.types[field]]));
  const create = (isKeyed: boolean) =>
    createRowStatement<object, ClaimedRow<Row>, Attempt<Row>>(database, table, {
      name: isKeyed ? `${table.name}-claim-keyed` : `${table.name}-claim`,
      given: isKeyed ? { ...types, ...KEY_TYPES } : types,
      text: (parts) => claimSql(table, claim, isKeyed, database.inSchema, parts),
      toOutcome,
      turns: table.name,
    });
  const [run, runKeyed] = [create(false), create(true)];
  const toResult = (row: NewRow, attempt: Attempt<Row>): CreateAttempt<Row> =>
    attempt === 'taken' || attempt === 'missing'
      ? { refusal: claim.refuse(row, attempt === 'taken') }
      : attempt;
  return async (row, key) =>
    createOrReplay<Row>(database, key, async () => {
      if (key === undefined) return toResult(row, await run(row));
      return toResult(row, await runKeyed({ ...row, ...toKeyMembers(key) }).catch(toExists));
    });
}

/** Another create with the key succeeded while this one waited. */
function toExists(error: unknown): 'exists' {
  if (readUniqueViolation(error) === 'idempotent_creates_pkey') return 'exists';
  throw error;
}

interface ClaimedRow<Row> {
  readonly is_running: boolean;
  readonly is_stored: boolean;
  readonly is_locked: boolean;
  readonly is_free: boolean | null;
  readonly is_there: boolean;
  readonly output: Row | null;
}

function toOutcome<Row>({
  is_running,
  is_stored,
  is_locked,
  is_free,
  is_there,
  output,
}: ClaimedRow<Row>): Attempt<Row> | Postponed {
  if (output !== null) return { output };
  if (is_stored) return 'exists';
  if (is_running) return 'running';
  // If the row was free, another call of the same statement has it, and it may still be free once more.
  if (is_locked) return is_free ? 'again' : 'taken';
  return is_there ? 'busy' : 'missing';
}
