import { BATCH_CHANNEL } from '../connections/batch-channel.js';
import { DatabaseOutage, isDatabaseOutage, readUniqueViolation } from '../connections/outage.js';
import { OPERATION_TIMEOUT_MS } from '../timing/timeouts.js';
import type { TableSql } from './table.js';

/** Few enough that a statement takes much less than STATEMENT_TIMEOUT_MS, and that PostgreSQL has room for their locks. */
const MAX_ROWS = 100;

/**
 * How calls that write share a statement: one runs at a time. A caller that waited longer has already received a 503, so
 * its call must not be stored.
 */
export const BATCHES = {
  maxSize: MAX_ROWS,
  maxConcurrent: 1,
  maxWaitMs: OPERATION_TIMEOUT_MS,
  channelName: BATCH_CHANNEL,
} as const;

/** PostgreSQL aborted the statement, perhaps because of one row: a deadlock, a deferred check, a trigger that waits. */
const ABORTED = /^(?:40|57014)/;

/** Whether the drawn id is already stored. That is not the row's fault, and the next attempt draws another id. */
export const isTakenId = (tableName: string, error: unknown) =>
  readUniqueViolation(error) === `${tableName}_pkey`;

/**
 * Runs a batch row by row after PostgreSQL has rejected or aborted it, and so stored none of it. While a whole table is
 * locked, the rows wait again, as many at once as there are connections, until their callers give up.
 *
 * An id may be taken if COPY or replication inserted rows with ids and left the sequence behind.
 */
export function isolateRejections<Call, Result>(
  { name }: TableSql,
  run: (batch: readonly Call[]) => Promise<Result[]>,
) {
  const isolate = async (batch: readonly Call[]): Promise<(Result | Error)[]> => {
    try {
      return await run(batch);
    } catch (error) {
      if (isTakenId(name, error)) return batch.map(() => new DatabaseOutage(error));
      const isRejection =
        !isDatabaseOutage(error) || ABORTED.test(String((error as { code?: unknown }).code));
      if (batch.length === 1 || !isRejection) return batch.map(() => error as Error);
      return (await Promise.all(batch.map((call) => isolate([call])))).flat();
    }
  };
  return isolate;
}
