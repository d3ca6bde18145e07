import type { InSchema } from '../connections/schema-name.js';
import {
  createRowStatement,
  type Postponed,
  type RowDatabase,
  type StatementParts,
} from './row-statements.js';
import type { Table } from './table.js';

/** What a change may set, and what refuses it */
export interface ChangeRules<Field extends string, Refusal extends string, Conditions> {
  readonly fields: readonly Field[];
  /**
   * Further members of a change, each with the field of the row whose type it has. Refusals compare them, but no field is
   * set to them.
   */
  readonly conditions?: Conditions;
  /**
   * For each reason to refuse a change, SQL for what its error names, or NULL where it does not apply. The first that applies
   * counts. The row is `seen` and the change is `given`, whose omitted members are NULL. A reason that concerns only some
   * changes says which, as in `given.status = 'sold' AND seen.status = 'sold'`. The SQL sees the row as it is now, and other
   * tables as when the statement began. So whatever decides has to change the row, too.
   */
  readonly refusals: Readonly<Record<Refusal, string>>;
}

/** The row after the change, or undefined if there is none; or why nothing was changed, with what the SQL of that reason names. */
export type Changed<Row, Refusal extends string> =
  | { readonly output: Row | undefined }
  | { readonly refusal: Refusal; readonly detail: string };

type FieldByMember<Row> = Readonly<Record<string, keyof Row & string>>;

type Given<Row, Field extends keyof Row, Conditions extends FieldByMember<Row>> = {
  readonly [Member in Field]?: Row[Member] | undefined;
} & { readonly [Member in keyof Conditions]?: Row[Conditions[Member]] | undefined };

/**
 * Changes the given members of a row. Changes that arrive while others are being stored share a statement. A change of a
 * locked row waits alone: see createRowStatement. A row that has changed since the statement began is tried again, so that
 * a refusal decides by rows of one moment.
 */
export function createChange<
  Row extends { readonly id: number },
  Field extends keyof Row & string,
  Refusal extends string,
  Conditions extends FieldByMember<Row> = Record<never, never>,
>(
  database: RowDatabase,
  table: Table<Row, never>,
  { fields, conditions, refusals }: ChangeRules<Field, Refusal, Conditions>,
): (id: number, change: Given<Row, Field, Conditions>) => Promise<Changed<Row, Refusal>> {
  type Call = Given<Row, Field, Conditions> & {
    readonly given_id: number;
    readonly given_members: readonly string[];
  };
  const fieldByMember: FieldByMember<Row> = {
    ...conditions,
    ...Object.fromEntries(fields.map((field) => [field, field])),
  };
  const types = Object.entries(fieldByMember).map(([member, field]) => [member, table.types[field]] as const);
  const run = createRowStatement<Call, ChangedRow<Row>, Changed<Row, Refusal>>(database, table, {
    name: `${table.name}-change`,
    given: { given_id: 'bigint', given_members: 'text[]', ...Object.fromEntries(types) },
    text: (parts) => changeSql(table, { fields, refusals }, database.inSchema, parts),
    toOutcome,
    toRow: ({ given_id }) => given_id,
  });
  return (id, change) => {
    const members = fields.filter((field) => change[field] !== undefined);
    return run({ ...change, given_id: id, given_members: members });
  };
}

interface ChangedRow<Row> {
  readonly is_there: boolean;
  readonly is_locked: boolean;
  readonly is_same: boolean | null;
  /** The reason, a space, and what the reason names */
  readonly refusal: string | null;
  readonly output: Row | null;
}

function toOutcome<Row, Refusal extends string>({
  is_there,
  is_locked,
  is_same,
  refusal,
  output,
}: ChangedRow<Row>): Changed<Row, Refusal> | Postponed {
  if (output !== null) return { output };
  if (!is_there) return { output: undefined };
  if (!is_locked) return 'busy';
  if (!is_same || refusal === null) return 'again';
  const [reason, ...detail] = refusal.split(' ');
  return { refusal: reason as Refusal, detail: detail.join(' ') };
}

/**
 * A statement sees a row that it has locked as it is now, and everything else as when the statement began. The `xmin` of a
 * row, the number of the transaction that wrote it, tells whether the two differ. For `boats`, whose field `status` may be
 * changed and which refuse it for the reason `sold`:
 *
 *     WITH given AS MATERIALIZED (
 *       SELECT * FROM …  -- given_id, given_members and "status" of each call
 *     ), locked AS MATERIALIZED (
 *       SELECT id, xmin AS version FROM "public"."boats" WHERE id IN (SELECT given_id FROM given) FOR UPDATE SKIP LOCKED
 *     ), judged AS MATERIALIZED (
 *       SELECT given.*, seen.id IS NOT NULL AS is_there, locked.id IS NOT NULL AS is_locked,
 *         locked.version = seen.xmin AS is_same, coalesce('sold ' || (…), NULL) AS refusal
 *       FROM given LEFT JOIN "public"."boats" AS seen ON seen.id = given_id LEFT JOIN locked ON locked.id = given_id
 *     ), changed AS (
 *       UPDATE "public"."boats" AS changing
 *       SET "status" = CASE WHEN 'status' = ANY (judged.given_members) THEN judged."status" ELSE changing."status" END
 *       FROM judged
 *       WHERE changing.id = judged.given_id AND judged.is_same AND judged.refusal IS NULL
 *       RETURNING judged.row_position, (SELECT json_build_object(…) FROM (SELECT changing.*) AS row) AS output
 *     )
 *     SELECT is_there, is_locked, is_same, refusal, output
 *     FROM judged LEFT JOIN changed USING (row_position) ORDER BY row_position
 */
function changeSql<Row, Field extends keyof Row & string>(
  { name, toColumn, json }: Pick<Table<Row, never>, 'name' | 'toColumn' | 'json'>,
  { fields, refusals }: Pick<ChangeRules<Field, string, unknown>, 'fields' | 'refusals'>,
  inSchema: InSchema,
  { given, lock }: StatementParts,
): string {
  const sets = fields.map((field) => {
    const [column, isGiven] = [toColumn(field), `'${field}' = ANY (judged.given_members)`];
    return `${column} = CASE WHEN ${isGiven} THEN judged."${field}" ELSE changing.${column} END`;
  });
  const reasons = Object.entries(refusals).map(([reason, sql]) => `'${reason} ' || (${sql})`);
  return `
    WITH given AS MATERIALIZED (
      SELECT * FROM ${given}
    ), locked AS MATERIALIZED (
      SELECT id, xmin AS version FROM ${inSchema(name)} WHERE id IN (SELECT given_id FROM given) ${lock}
    ), judged AS MATERIALIZED (
      SELECT given.*, seen.id IS NOT NULL AS is_there, locked.id IS NOT NULL AS is_locked,
        locked.version = seen.xmin AS is_same, coalesce(${[...reasons, 'NULL'].join(', ')}) AS refusal
      FROM given LEFT JOIN ${inSchema(name)} AS seen ON seen.id = given_id LEFT JOIN locked ON locked.id = given_id
    ), changed AS (
      UPDATE ${inSchema(name)} AS changing SET ${sets.join(', ')} FROM judged
      WHERE changing.id = judged.given_id AND judged.is_same AND judged.refusal IS NULL
      RETURNING judged.row_position, (SELECT ${json} FROM (SELECT changing.*) AS row) AS output
    )
    SELECT is_there, is_locked, is_same, refusal, output
    FROM judged LEFT JOIN changed USING (row_position) ORDER BY row_position`;
}
