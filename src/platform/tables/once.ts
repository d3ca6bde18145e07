import type { Database } from '../connections/client.js';
import type { Prisma } from '../connections/generated/client.js';
import type { InSchema } from '../connections/schema-name.js';
import { OPERATION_TIMEOUT_MS, TimeoutError } from '../timing/timeouts.js';
import {
  type CreateResult,
  createOrReplay,
  type IdempotencyKey,
  insertKeySql,
  KEY_COLUMNS,
  keySql,
  toIdValues,
  toKeyParameter,
  toKeyValues,
} from './idempotency.js';
import { takeTurnSql } from './insert-statements.js';

/** A transaction that took longer would be stored after its caller has been told to try again. */
const TRANSACTION_TIMEOUT_MS = OPERATION_TIMEOUT_MS - 100;

/** The client of one of Prisma's interactive transactions. */
export type Transaction = Prisma.TransactionClient;

/**
 * Waits for the transaction that adds rows to a table, and keeps the others waiting until this one is visible, so that rows
 * become visible in the order of their ids. Take it right before the insert, which is best the last statement.
 *
 * @throws TypeError for a table that has no row in insert_turns
 */
type TakeTurn = (tableName: string) => Promise<void>;

/**
 * Runs a create in one of Prisma's transactions, at most once for each key.
 *
 * @param key of `ctx.once`; without one, the create only runs in a transaction
 * @param run resolves with the output of the operation, as JSON can hold it. It may be run again when PostgreSQL has stored
 *   nothing of it, so whatever it does elsewhere belongs after it. It takes the turn of a table that is listed by its ids
 *   before it inserts there.
 * @throws ApiError idempotency_key_reused, idempotency_key_in_use; and whatever `run` throws, having stored nothing
 */
export type Once = <Output>(
  key: IdempotencyKey | undefined,
  run: (transaction: Transaction, takeTurn: TakeTurn) => Promise<Output>,
) => Promise<CreateResult<Output>>;

/**
 * Makes any create safe to repeat: one with several tables, or one that reads before it writes. The output and its key are
 * stored in the same transaction, so that both are stored or neither, and repetitions behave as those of createInsert,
 * which is faster for rows of one table.
 */
export function createOnce(database: Pick<Database, 'writes' | 'inSchema' | 'loadPrisma'>): Once {
  const statements = createStatements(database.inSchema);
  const toTakeTurn =
    (transaction: Transaction): TakeTurn =>
    async (tableName) => {
      const sql = takeTurnSql(tableName, database.inSchema);
      if ((await transaction.$queryRawUnsafe<unknown[]>(sql)).length === 0)
        throw new TypeError(`insert_turns lacks the table ${tableName}: its migration adds the row`);
    };
  return async <Output>(
    key: IdempotencyKey | undefined,
    run: (transaction: Transaction, takeTurn: TakeTurn) => Promise<Output>,
  ) => {
    const endsAt = performance.now() + TRANSACTION_TIMEOUT_MS;
    const prisma = await database.loadPrisma();
    const transact = <Result>(work: (transaction: Transaction) => Promise<Result>) => {
      const leftMs = Math.floor(endsAt - performance.now());
      if (leftMs <= 0) throw new TimeoutError(`No transaction within ${TRANSACTION_TIMEOUT_MS} ms`);
      // The wait for a connection is not part of `timeout`.
      const maxWait = Math.ceil(leftMs / 3);
      return prisma.$transaction(work, { maxWait, timeout: leftMs - maxWait });
    };
    if (key === undefined)
      return transact(async (transaction) => ({
        output: parseJson<Output>(toJson(await run(transaction, toTakeTurn(transaction)))),
        isReplay: false,
      }));
    return createOrReplay<Output>(database, key, () =>
      transact(async (transaction) => {
        const ask = async (question: string) => {
          const [row] = await transaction.$queryRawUnsafe<{ isTrue: boolean }[]>(
            question,
            ...toIdValues(key),
          );
          return row?.isTrue === true;
        };
        if (!(await ask(statements.lock))) return 'running';
        if (await ask(statements.isStored)) return 'exists';
        const json = toJson(await run(transaction, toTakeTurn(transaction)));
        await transaction.$executeRawUnsafe(statements.store, ...toKeyValues(key), json);
        return { output: parseJson<Output>(json) };
      }),
    );
  };
}

/** The lock is a statement of its own: only a statement that begins after it sees what the last holder has stored. */
function createStatements(inSchema: InSchema) {
  const { lock, isStored } = keySql(inSchema, toKeyParameter);
  const values = KEY_COLUMNS.map(([column, type], index) => toKeyParameter(column, type, index));
  const response = `$${KEY_COLUMNS.length + 1}::text::json`;
  return {
    lock: `SELECT pg_try_advisory_xact_lock(${lock}) AS "isTrue"`,
    isStored: `SELECT ${isStored} AS "isTrue"`,
    store: `${insertKeySql(inSchema)} VALUES (${values.join(', ')}, ${response})`,
  };
}

/**
 * The first response is made of the stored JSON, as later ones are, so that they are equal byte for byte.
 *
 * @throws TypeError for an output that no response can hold; nothing of the create is stored then
 */
function toJson(output: unknown): string {
  const json: string | undefined = JSON.stringify(output);
  if (json === undefined)
    throw new TypeError(
      'A create under createOnce resolves with what its operation returns, and this one with nothing',
    );
  return json;
}

function parseJson<Output>(json: string): Output {
  return JSON.parse(json);
}
