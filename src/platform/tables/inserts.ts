import { createBatchLoader } from '@animal-store/batch-loader';
import type { Database } from '../connections/client.js';
import { DatabaseOutage, isDatabaseOutage, readUniqueViolation } from '../connections/outage.js';
import { BATCH_CHANNEL } from '../timing/batch-channel.js';
import { OPERATION_TIMEOUT_MS } from '../timing/timeouts.js';
import { type CreateAttempt, type CreateResult, createOrReplay, type IdempotencyKey } from './idempotency.js';
import { keyedRowsSql, rowsSql, toKeyMembers } from './insert-statements.js';
import type { Table, TableSql } from './table.js';

/** Few enough that a statement takes much less than STATEMENT_TIMEOUT_MS, and that PostgreSQL has room for their locks. */
const MAX_ROWS = 100;
/** One insert at a time, as WRITES_PER_TABLE says. A create that waited longer has got a 503, and should not be stored later. */
const BATCHES = {
  maxSize: MAX_ROWS,
  maxConcurrent: 1,
  maxWaitMs: OPERATION_TIMEOUT_MS,
  channelName: BATCH_CHANNEL,
} as const;
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
  writes.register({ ...statement, emptyValues: ['[]'], isOnlyPlanned: true });
  const insertAll = async (batch: readonly NewRow[]) => {
    const rows = await writes.query<{ id: string; output: Row }>(statement, [table.toJson(batch)]);
    return rows.sort((a, b) => Number(a.id) - Number(b.id)).map(({ output }) => output);
  };
  return createBatchLoader<NewRow, Row>(isolateRejections(table, insertAll), BATCHES);
}

function createKeyedRowLoader<Row, NewRow>({ writes, inSchema }: Writes, table: Table<Row, NewRow>) {
  const text = keyedRowsSql(table, inSchema);
  const statement = { table: table.name, name: `${table.name}-create-keyed`, text };
  writes.register({ ...statement, emptyValues: ['[]'], isOnlyPlanned: true });
  const insertAll = async (batch: readonly KeyedRow<NewRow>[]): Promise<CreateAttempt<Row>[]> => {
    const given = table.toJson(batch.map(({ row, key }) => ({ ...row, ...toKeyMembers(key) })));
    try {
      const rows = await writes.query<{ is_stored: boolean; output: Row | null }>(statement, [given]);
      return rows.map(({ is_stored, output }) =>
        output === null ? (is_stored ? 'exists' : 'running') : { output },
      );
    } catch (error) {
      // Another create with one of the keys succeeded while this waited; the next attempt finds it stored.
      if (readUniqueViolation(error) === 'idempotent_creates_pkey') return insertAll(batch);
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
      if (readUniqueViolation(error) === `${name}_pkey`) return batch.map(() => new DatabaseOutage(error));
      const isRejection =
        !isDatabaseOutage(error) || ABORTED.test(String((error as { code?: unknown }).code));
      if (batch.length === 1 || !isRejection) return batch.map(() => error as Error);
      return (await Promise.all(batch.map((call) => isolate([call])))).flat();
    }
  };
  return isolate;
}
