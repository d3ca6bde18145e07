import { createBatchLoader } from '../batch-loader.js';
import { OPERATION_TIMEOUT_MS } from '../timing/timeouts.js';
import { emptyParameters, readsNullsSql, toParameters, unnest } from './array-parameters.js';
import type { Database } from './client.js';
import {
  type CreateAttempt,
  type CreateResult,
  createOrReplay,
  type IdempotencyKey,
  insertKeySql,
  KEY_COLUMNS,
  keySql,
  toKeyValues,
} from './idempotency.js';
import { takeTurnSql } from './insert-turns.js';
import { DatabaseOutage, isDatabaseOutage } from './outage.js';
import type { InSchema } from './schema-name.js';
import { givenSql, type Table, type TableSql } from './table.js';

/** Few enough for a statement to take much less than STATEMENT_TIMEOUT_MS, and for their locks to fit in memory. */
const MAX_ROWS = 100;
/** A create that waited longer has been answered with a 503, and should not be stored afterwards. */
const BATCHES = { maxSize: MAX_ROWS, maxWaitMs: OPERATION_TIMEOUT_MS } as const;
/** SQLSTATE, PostgreSQL's appendix A. */
const UNIQUE_VIOLATION = '23505';
/** PostgreSQL aborted the statement, for one of its rows perhaps: a deadlock, a deferred check, a trigger that waits. */
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
  database: Pick<Database, 'pool' | 'writes' | 'inSchema'>,
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
  const statement = { name: `${table.name}-create`, text: rowsSql(table, inSchema) };
  writes.register({ ...statement, emptyValues: emptyParameters(table.insertColumns) });
  const insertAll = async (batch: readonly NewRow[]) => {
    const values = toParameters(batch.map((row) => table.toValues(row)));
    const rows = await writes.query<{ id: string; output: Row }>(statement, values);
    expectAll(rows, batch);
    return rows.sort((a, b) => Number(a.id) - Number(b.id)).map(({ output }) => output);
  };
  return createBatchLoader<NewRow, Row>(isolateRejections(table, insertAll), BATCHES);
}

function createKeyedRowLoader<Row, NewRow>({ writes, inSchema }: Writes, table: Table<Row, NewRow>) {
  const statement = { name: `${table.name}-create-keyed`, text: keyedRowsSql(table, inSchema) };
  writes.register({
    ...statement,
    emptyValues: emptyParameters({ ...table.insertColumns, ...KEY_OF_REQUEST }),
  });
  const insertAll = async (batch: readonly KeyedRow<NewRow>[]): Promise<CreateAttempt<Row>[]> => {
    const values = batch.map(({ row, key }) => [...table.toValues(row), ...toKeyValues(key)]);
    try {
      const rows = await writes.query<{ is_stored: boolean; output: Row | null }>(
        statement,
        toParameters(values),
      );
      expectAll(rows, batch);
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
 * Runs a batch row by row when PostgreSQL rejects or aborts it as a whole, in which case nothing of it has been stored.
 * While a whole table is locked each row waits again: as many as there are connections, until their callers have given up.
 *
 * No row is to blame for an id that is stored already: somebody has brought ids along, by COPY or replication, and left the
 * sequence behind. The next attempt draws others.
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

/** @throws Error, which counts as an outage, unless there is a result for each create */
function expectAll(rows: readonly unknown[], batch: readonly unknown[]): void {
  if (rows.length === batch.length) return;
  throw new Error(`${rows.length} of ${batch.length} rows were inserted: array_nulls is off in this session`);
}

/**
 * True, or an error whose text says why, so that nothing is stored: a trigger of an operator may leave out rows, and nobody
 * could tell whose. PostgreSQL has no other way to raise an error from within a statement.
 */
const isCompleteSql = (given: string) => `
  (SELECT CASE pg_catalog.count(*) WHEN ${given} THEN true ELSE (pg_catalog.count(*) || ' of ' || ${given} ||
     ' rows were inserted: a trigger leaves rows out, or insert_turns lacks the table')::boolean END
   FROM created)`;

/**
 * The statement takes the turn of its table before it draws an id, because the join has no row before that. The ids ascend
 * in the order of the rows, since PostgreSQL sorts first. What it returns has no certain order.
 */
function rowsSql({ name, insertColumns, json }: TableSql, inSchema: InSchema): string {
  const columns = Object.keys(insertColumns).join(', ');
  const readsNulls = readsNullsSql(insertColumns);
  const given = `CASE WHEN ${readsNulls} THEN pg_catalog.cardinality($1) ELSE 0 END`;
  return `
    WITH created AS (
      INSERT INTO ${inSchema(name)} (${columns})
      SELECT ${givenSql(insertColumns, inSchema)}
      FROM (${takeTurnSql(name, inSchema)}) AS turn, ${unnest(insertColumns, inSchema)}
      WHERE ${readsNulls} ORDER BY row_position
      RETURNING id, ${json} AS output
    )
    SELECT id, output FROM created WHERE ${isCompleteSql(given)}`;
}

/** With a prefix, because a table may have columns of these names. */
const toRequestColumn = (column: string) => `request_${column}`;
/** What createKeyedRowLoader adds to a row. */
const KEY_OF_REQUEST = Object.fromEntries(KEY_COLUMNS.map(([name, type]) => [toRequestColumn(name), type]));

/**
 * Of several rows with one key in a statement, only the first is inserted; a lock does not exclude its own session. A row
 * without output was not inserted: its key is stored already, or another create with it is running.
 */
function keyedRowsSql({ name, insertColumns, json }: TableSql, inSchema: InSchema): string {
  const columns = Object.keys(insertColumns).join(', ');
  const key = keySql(inSchema, toRequestColumn);
  const given = { ...insertColumns, ...KEY_OF_REQUEST };
  return `
    WITH requested AS MATERIALIZED (
      SELECT *, pg_catalog.row_number() OVER (PARTITION BY ${key.id} ORDER BY row_position) = 1
        AND pg_catalog.pg_try_advisory_xact_lock(${key.lock}) AS is_locked, ${key.isStored} AS is_stored
      FROM ${unnest(given, inSchema)} WHERE ${readsNullsSql(given)}
    ), to_insert AS MATERIALIZED (
      SELECT *, pg_catalog.row_number() OVER (ORDER BY row_position) AS row_rank FROM requested
      WHERE is_locked AND NOT is_stored
    ), created AS (
      INSERT INTO ${inSchema(name)} (${columns})
      SELECT ${givenSql(insertColumns, inSchema)} FROM (${takeTurnSql(name, inSchema)}) AS turn, to_insert
      ORDER BY row_position
      RETURNING id, ${json} AS output
    ), inserted AS MATERIALIZED (
      SELECT to_insert.*, output
      FROM to_insert JOIN (SELECT output, pg_catalog.row_number() OVER (ORDER BY id) AS row_rank FROM created) AS ranked
      USING (row_rank)
    ), remembered AS (
      ${insertKeySql(inSchema)} SELECT ${Object.keys(KEY_OF_REQUEST).join(', ')}, output FROM inserted
    )
    SELECT requested.is_stored, inserted.output
    FROM requested LEFT JOIN inserted USING (row_position)
    WHERE ${isCompleteSql('(SELECT pg_catalog.count(*) FROM to_insert)')} ORDER BY row_position`;
}
