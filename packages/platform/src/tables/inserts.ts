import { createBatchLoader } from '@animal-store/batch-loader';
import type { Database } from '../connections/client.js';
import { readUniqueViolation } from '../connections/outage.js';
import { BATCHES, isolateRejections } from './batches.js';
import { type CreateAttempt, type CreateResult, createOrReplay, type IdempotencyKey } from './idempotency.js';
import { keyedRowsSql, rowsSql, toKeyMembers } from './insert-statements.js';
import type { Table } from './table.js';

/** Inserts a row. @throws ApiError idempotency_key_reused, idempotency_key_in_use */
export type Insert<NewRow, Row> = (row: NewRow, key?: IdempotencyKey) => Promise<CreateResult<Row>>;

type Writes = Pick<Database, 'writes' | 'inSchema'>;

interface KeyedRow<NewRow> {
  readonly row: NewRow;
  readonly key: IdempotencyKey;
}

/**
 * Inserts rows and returns their JSON. Rows that arrive while others are being stored share a statement, which inserts
 * all of them or none. If PostgreSQL rejects it, each row gets a statement of its own, so that none affects another.
 *
 * With an idempotency key, a repetition returns what the first create returned. One statement inserts the row and its
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
  writes.register({ ...statement, emptyValues: ['[]'], isOnlyPlanned: true, takesTurn: true });
  const insertAll = async (batch: readonly NewRow[]) => {
    const rows = await writes.query<{ id: string; output: Row }>(statement, [table.toJson(batch)]);
    return rows.sort((a, b) => Number(a.id) - Number(b.id)).map(({ output }) => output);
  };
  return createBatchLoader<NewRow, Row>(isolateRejections(table, insertAll), BATCHES);
}

function createKeyedRowLoader<Row, NewRow>({ writes, inSchema }: Writes, table: Table<Row, NewRow>) {
  const text = keyedRowsSql(table, inSchema);
  const statement = { table: table.name, name: `${table.name}-create-keyed`, text };
  writes.register({ ...statement, emptyValues: ['[]'], isOnlyPlanned: true, takesTurn: true });
  const insertAll = async (batch: readonly KeyedRow<NewRow>[]): Promise<CreateAttempt<Row>[]> => {
    const given = table.toJson(batch.map(({ row, key }) => ({ ...row, ...toKeyMembers(key) })));
    try {
      const rows = await writes.query<{ is_stored: boolean; output: Row | null }>(statement, [given]);
      return rows.map(({ is_stored, output }) =>
        output === null ? (is_stored ? 'exists' : 'running') : { output },
      );
    } catch (error) {
      // Another create with one of the keys succeeded while this one waited. The next attempt finds that key stored.
      if (readUniqueViolation(error) === 'idempotent_creates_pkey') return insertAll(batch);
      throw error;
    }
  };
  return createBatchLoader<KeyedRow<NewRow>, CreateAttempt<Row>>(
    isolateRejections(table, insertAll),
    BATCHES,
  );
}
