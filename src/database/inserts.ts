import { setTimeout as delay } from 'node:timers/promises';
import { createBatchLoader } from '../batching/batch-loader.js';
import { OPERATION_TIMEOUT_MS } from '../batching/timeouts.js';
import { ApiError } from '../errors/api-error.js';
import type { Database } from './client.js';
import { findStoredCreate, type IdempotencyKey } from './idempotency.js';
import { type Inserts, insertOnceSql, insertOneSql, insertSql, keyValues, toColumns } from './insert-sql.js';
import { isDatabaseOutage } from './outage.js';
import type { Pipeline } from './pipeline.js';
import type { Statement } from './pipelined-connection.js';

/** Few enough for a statement to take much less than STATEMENT_TIMEOUT_MS, and for their locks to fit in memory. */
const MAX_ROWS = 100;
/** A create that waited longer has been answered with a 503, and should not be stored afterwards. */
const BATCHES = { maxSize: MAX_ROWS, maxWaitMs: OPERATION_TIMEOUT_MS } as const;
/** The pause before each attempt while the first create with a key is running. No connection is held during a pause. */
const WAITS_MS = [0, 20, 50, 100, 200, 400];
/** SQLSTATE, PostgreSQL's appendix A. */
const UNIQUE_VIOLATION = '23505';

/** Inserts a row. @throws ApiError idempotency_key_reused, idempotency_key_in_use */
export type Insert<Input, Output> = (input: Input, idempotencyKey?: IdempotencyKey) => Promise<Output>;

interface KeyedRow<Input> {
  readonly input: Input;
  readonly idempotencyKey: IdempotencyKey;
}

/**
 * `running`: another create with this key, on any node, holds the advisory lock until its statement ends, or is in the
 * same one. `exists`: one has succeeded before.
 */
type Attempt<Output> = { readonly output: Output } | 'running' | 'exists';

/**
 * Inserts rows and returns their JSON. Those that arrive while others are being stored share a statement, which inserts
 * all of them or none. When PostgreSQL rejects it, each row gets a statement of its own, so that none affects another.
 *
 * With an idempotency key, a repetition returns what the first create returned: one statement inserts the row and its
 * key, so that both are stored or neither. When several nodes try at once, the primary key of idempotent_creates lets
 * only one succeed, and an advisory lock saves the others the wait.
 */
export function createInsert<Input, Output>(
  { prisma, writes }: Pick<Database, 'prisma' | 'writes'>,
  inserts: Inserts<Input>,
): Insert<Input, Output> {
  const rows = createRowLoader<Input, Output>(writes, inserts);
  const keyedRows = createKeyedRowLoader<Input, Output>(writes, inserts);
  return async (input, idempotencyKey) => {
    if (idempotencyKey === undefined) return rows.load(input);
    for (const wait of WAITS_MS) {
      if (wait > 0) await delay(wait);
      const attempt = await keyedRows.load({ input, idempotencyKey });
      if (attempt === 'running') continue;
      const stored = attempt === 'exists' ? await findStoredCreate<Output>(prisma, idempotencyKey) : attempt;
      if (stored === undefined) continue;
      idempotencyKey.header.setReplayed(attempt === 'exists');
      return stored.output;
    }
    throw new ApiError('idempotency_key_in_use');
  };
}

function createRowLoader<Input, Output>(writes: Pipeline, inserts: Inserts<Input>) {
  const one: Statement = { name: `${inserts.table}-create`, text: insertOneSql(inserts) };
  const several: Statement = { name: `${inserts.table}-create-all`, text: insertSql(inserts) };
  const insertAll = async (batch: readonly Input[]) => {
    const values = batch.map((input) => inserts.toValues(input));
    const [first] = values as [readonly unknown[]];
    const isOne = values.length === 1;
    const rows = await writes.query<{ id: string; output: Output }>(
      isOne ? one : several,
      isOne ? first : toColumns(values),
    );
    return rows.sort((a, b) => Number(a.id) - Number(b.id)).map(({ output }) => output);
  };
  return createBatchLoader<Input, Output>(isolateRejections(insertAll), BATCHES);
}

function createKeyedRowLoader<Input, Output>(writes: Pipeline, inserts: Inserts<Input>) {
  const statement: Statement = { name: `${inserts.table}-create-once`, text: insertOnceSql(inserts) };
  const insertAll = async (batch: readonly KeyedRow<Input>[]): Promise<Attempt<Output>[]> => {
    const values = batch.map((row) => [...inserts.toValues(row.input), ...keyValues(row.idempotencyKey)]);
    try {
      const rows = await writes.query<{ is_stored: boolean; output: Output | null }>(
        statement,
        toColumns(values),
      );
      return rows.map(({ is_stored, output }) =>
        output === null ? (is_stored ? 'exists' : 'running') : { output },
      );
    } catch (error) {
      if (batch.length === 1 && isKeyStored(error)) return ['exists'];
      throw error;
    }
  };
  return createBatchLoader<KeyedRow<Input>, Attempt<Output>>(isolateRejections(insertAll), BATCHES);
}

/** Runs a batch row by row when PostgreSQL rejects it as a whole, in which case nothing of it has been stored. */
function isolateRejections<Call, Result>(run: (batch: readonly Call[]) => Promise<Result[]>) {
  return async (batch: readonly Call[]): Promise<(Result | Error)[]> => {
    try {
      return await run(batch);
    } catch (error) {
      if (batch.length === 1 || isDatabaseOutage(error)) return batch.map(() => error as Error);
      return Promise.all(
        batch.map((call) =>
          run([call]).then(
            ([result]) => result as Result,
            (own: Error) => own,
          ),
        ),
      );
    }
  };
}

/** Another create with this key succeeded between the statement's start and its own insert. */
function isKeyStored(error: unknown): boolean {
  const { code, constraint } = error as { code?: unknown; constraint?: unknown };
  return code === UNIQUE_VIOLATION && constraint === 'idempotent_creates_pkey';
}
