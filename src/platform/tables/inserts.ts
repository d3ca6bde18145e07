import { createBatchLoader } from '../batch-loader.js';
import type { Database } from '../connections/client.js';
import { DatabaseOutage, isDatabaseOutage } from '../connections/outage.js';
import type { InSchema } from '../connections/schema-name.js';
import { OPERATION_TIMEOUT_MS } from '../timing/timeouts.js';
import {
  type CreateAttempt,
  type CreateResult,
  createOrReplay,
  type IdempotencyKey,
  insertKeySql,
  KEY_COLUMNS,
  keySql,
} from './idempotency.js';
import { takeTurnSql } from './insert-turns.js';
import { type InsertColumn, type Table, type TableSql, typeSql } from './table.js';

/** Few enough that a statement takes much less than STATEMENT_TIMEOUT_MS, and that PostgreSQL has room for their locks. */
const MAX_ROWS = 100;
/** One insert at a time, as WRITES_PER_TABLE says. A create that waited longer has got a 503, and should not be stored later. */
const BATCHES = { maxSize: MAX_ROWS, maxConcurrent: 1, maxWaitMs: OPERATION_TIMEOUT_MS } as const;
/** SQLSTATE, PostgreSQL's appendix A. */
const UNIQUE_VIOLATION = '23505';
/** PostgreSQL aborted the statement, perhaps for one of its rows: a deadlock, a deferred check, a trigger that waits. */
const ABORTED = /^(?:40|57014)/;

/** Inserts a row. @throws ApiError idempotency_key_reused, idempotency_key_in_use */
export type Insert<NewRow, Row> = (row: NewRow, key?: IdempotencyKey) => Promise<CreateResult<Row>>;

type Writes = Pick<Database, 'writes' | 'inSchema'>;

interface KeyedRow<NewRow> {
  readonly row: NewRow;
  readonly key: IdempotencyKey;
}

/**
 * Inserts rows and returns their JSON. Those that arrive while others are being stored share a statement, which inserts
 * all of them or none. When PostgreSQL rejects it, each row gets a statement of its own, so that none affects another.
 *
 * With an idempotency key, a repetition returns what the first create returned: one statement inserts the row and its
 * key, so that both are stored or neither. When several nodes try at once, the primary key of idempotent_creates lets
 * only one succeed, and an advisory lock saves the others the wait.
 */
export function createInsert<Row, NewRow>(
  database: Pick<Database, 'writes' | 'inSchema'>,
  table: Table<Row, NewRow>,
): Insert<NewRow, Row> {
  const rows = createRowLoader(database, table);
  const keyedRows = createKeyedRowLoader(database, table);
  return async (row, key) =>
    key === undefined
      ? { output: await rows.load(row), isReplay: false }
      : createOrReplay(database, key, () => keyedRows.load({ row, key }));
}

function createRowLoader<Row, NewRow>({ writes, inSchema }: Writes, table: Table<Row, NewRow>) {
  const statement = { table: table.name, name: `${table.name}-create`, text: rowsSql(table, inSchema) };
  writes.register({ ...statement, emptyValues: ['[]'] });
  const insertAll = async (batch: readonly NewRow[]) => {
    const rows = await writes.query<{ id: string; output: Row }>(statement, [table.toJson(batch)]);
    return rows.sort((a, b) => Number(a.id) - Number(b.id)).map(({ output }) => output);
  };
  return createBatchLoader<NewRow, Row>(isolateRejections(table, insertAll), BATCHES);
}

function createKeyedRowLoader<Row, NewRow>({ writes, inSchema }: Writes, table: Table<Row, NewRow>) {
  const text = keyedRowsSql(table, inSchema);
  const statement = { table: table.name, name: `${table.name}-create-keyed`, text };
  writes.register({ ...statement, emptyValues: ['[]'] });
  const insertAll = async (batch: readonly KeyedRow<NewRow>[]): Promise<CreateAttempt<Row>[]> => {
    const given = table.toJson(batch.map(({ row, key }) => ({ ...row, ...toKeyMembers(key) })));
    try {
      const rows = await writes.query<{ is_stored: boolean; output: Row | null }>(statement, [given]);
      return rows.map(({ is_stored, output }) =>
        output === null ? (is_stored ? 'exists' : 'running') : { output },
      );
    } catch (error) {
      // Another create with one of the keys succeeded while this waited; the next attempt finds it stored.
      if (violates(error, UNIQUE_VIOLATION, 'idempotent_creates_pkey')) return insertAll(batch);
      throw error;
    }
  };
  return createBatchLoader<KeyedRow<NewRow>, CreateAttempt<Row>>(
    isolateRejections(table, insertAll),
    BATCHES,
  );
}

/**
 * Runs a batch row by row when PostgreSQL rejects or aborts it, which means that nothing of it is stored. While a whole
 * table is locked, the rows wait again, as many at once as there are connections, until their callers have given up.
 *
 * An id that is stored already is no row's fault: somebody has inserted rows with ids, by COPY or replication, and left the
 * sequence behind. The next attempt draws other ids.
 */
function isolateRejections<Call, Result>(
  { name }: TableSql,
  run: (batch: readonly Call[]) => Promise<Result[]>,
) {
  const isolate = async (batch: readonly Call[]): Promise<(Result | Error)[]> => {
    try {
      return await run(batch);
    } catch (error) {
      if (violates(error, UNIQUE_VIOLATION, `${name}_pkey`))
        return batch.map(() => new DatabaseOutage(error));
      const isRejection =
        !isDatabaseOutage(error) || ABORTED.test(String((error as { code?: unknown }).code));
      if (batch.length === 1 || !isRejection) return batch.map(() => error as Error);
      return (await Promise.all(batch.map((call) => isolate([call])))).flat();
    }
  };
  return isolate;
}

function violates(error: unknown, code: string, constraint: string): boolean {
  const found = error as { code?: unknown; constraint?: unknown };
  return found.code === code && found.constraint === constraint;
}

/**
 * The rows of a batch as a table with their positions. They are one JSON parameter. JSON does not depend on settings of the
 * session, nor on types of the schema, which a restore may replace by others of the same name.
 */
function givenSql(columns: readonly InsertColumn[], inSchema: InSchema): string {
  const fields = columns.map(({ field }) => field).join(', ');
  const types = columns.map(({ field, type }) => `${field} ${typeSql(type, inSchema)}`).join(', ');
  return `ROWS FROM (json_to_recordset($1) AS (${types})) WITH ORDINALITY AS given (${fields}, row_position)`;
}

/**
 * The INSERT, to which further tables and conditions may be added. It takes the turn of its table before it draws an id,
 * because the join has no row before that. With ORDER BY row_position, ids ascend in the order of the rows.
 */
function insertSql({ name, insertColumns }: TableSql, inSchema: InSchema): string {
  return `
    INSERT INTO ${inSchema(name)} (${insertColumns.map(({ column }) => column).join(', ')})
    SELECT ${insertColumns.map(({ field }) => field).join(', ')} FROM (${takeTurnSql(name, inSchema)}) AS turn`;
}

/**
 * SQL: true if every row was inserted. If not, it raises an error that says why, and nothing is stored: we could not tell
 * which caller's row is missing. A failing cast is PostgreSQL's only way to raise an error from within a statement.
 */
const isCompleteSql = (given: string) => `
  (SELECT CASE count(*) WHEN ${given} THEN true ELSE (count(*) || ' of ' || ${given} ||
     ' rows were inserted: a trigger leaves rows out, or insert_turns lacks the table')::boolean END FROM created)`;

/** Its result has no certain order. */
function rowsSql(table: TableSql, inSchema: InSchema): string {
  return `
    WITH created AS (
      ${insertSql(table, inSchema)}, ${givenSql(table.insertColumns, inSchema)}
      ORDER BY row_position
      RETURNING id, ${table.json} AS output
    )
    SELECT id, output FROM created WHERE ${isCompleteSql('json_array_length($1)')}`;
}

/** With a prefix, because a table may have columns of these names. */
const toKeyField = (column: string) => `request_${column}`;
/** The columns that createKeyedRowLoader adds to a row. */
const KEY_OF_ROW: readonly InsertColumn[] = KEY_COLUMNS.map(([column, type]) => ({
  column,
  field: toKeyField(column),
  type,
}));

function toKeyMembers(key: IdempotencyKey): Record<string, unknown> {
  const toJson = (value: unknown) =>
    value instanceof Uint8Array ? `\\x${Buffer.from(value).toString('hex')}` : value;
  return Object.fromEntries(
    KEY_COLUMNS.map(([column, , member]) => [toKeyField(column), toJson(key[member])]),
  );
}

/**
 * Of several rows with one key in a statement, only the first is inserted; a lock does not exclude its own session. A row
 * without output was not inserted: its key is stored already, or another create with it is running.
 */
function keyedRowsSql(table: TableSql, inSchema: InSchema): string {
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
