import type { Database } from '../connections/client.js';
import { DatabaseOutage, readUniqueViolation } from '../connections/outage.js';
import type { InSchema } from '../connections/schema-name.js';
import type { AnyPrisma } from '../definition/definition.js';
import { OPERATION_TIMEOUT_MS, TimeoutError, withTimeout } from '../timing/timeouts.js';
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
export type Transaction<Prisma> = Omit<
  Prisma,
  '$connect' | '$disconnect' | '$on' | '$use' | '$extends' | '$transaction'
>;

/** What a transaction waits for. All lock rows in the same order, so that no two deadlock: see docs/recipes.md. */
export interface Locks {
  /**
   * Waits for the transactions that change a row or refer to it, and keeps others from both until this one ends. Statements
   * after it see what those have stored.
   *
   * @returns whether there is such a row
   */
  lockRow(tableName: string, id: number | bigint): Promise<boolean>;
  /**
   * Waits for the transaction that adds rows to a table, and keeps the others waiting until this one is visible, so that
   * rows become visible in the order of their ids. Take it right before the insert, which is best the last statement.
   *
   * @throws TypeError for a table that has no row in insert_turns
   */
  takeTurn(tableName: string): Promise<void>;
}

/** It may be run again when PostgreSQL has stored nothing of it, so whatever it does elsewhere belongs after it. */
type Change<Output, Prisma> = (transaction: Transaction<Prisma>, locks: Locks) => Promise<Output>;

/** Changes of several tables, and those that read before they write: each is stored as a whole, or not at all. */
export interface Transactions<Prisma = AnyPrisma> {
  /** Resolves with what the change returns. @throws whatever it throws, having stored nothing */
  run<Output>(change: Change<Output, Prisma>): Promise<Output>;
  /**
   * Runs a create at most once for each key. Its output and the key are stored in the same transaction, and repetitions
   * behave as those of createInsert, which is faster for rows of one table.
   *
   * @param key of `ctx.once`; without one, the create only runs in a transaction
   * @param create resolves with the output of the operation, as JSON can hold it
   * @throws ApiError idempotency_key_reused, idempotency_key_in_use; and whatever `create` throws, having stored nothing
   */
  once<Output>(
    key: IdempotencyKey | undefined,
    create: Change<Output, Prisma>,
  ): Promise<CreateResult<Output>>;
}

/** Runs changes in Prisma's transactions, within the time of a request. */
export function createTransactions<Prisma>(
  database: Pick<Database<Prisma>, 'writes' | 'inSchema' | 'loadPrisma'>,
): Transactions<Prisma> {
  const statements = createKeyedStatements(database.inSchema);
  const run = <Output>(change: Change<Output, Prisma>) => transact(database, toDeadline(), change);
  return {
    run,
    async once<Output>(key: IdempotencyKey | undefined, create: Change<Output, Prisma>) {
      if (key === undefined) {
        const json = await run(async (...given) => toJson(await create(...given)));
        return { output: parseJson<Output>(json), isReplay: false };
      }
      const deadline = toDeadline();
      return createOrReplay<Output>(database, key, () =>
        transact(database, deadline, async (transaction, locks) => {
          const raw = transaction as unknown as AnyPrisma;
          const ask = async (question: string) => {
            const [row] = await raw.$queryRawUnsafe<{ isTrue: boolean }[]>(question, ...toIdValues(key));
            return row?.isTrue === true;
          };
          if (!(await ask(statements.lock))) return 'running';
          if (await ask(statements.isStored)) return 'exists';
          const json = toJson(await create(transaction, locks));
          await raw.$executeRawUnsafe(statements.store, ...toKeyValues(key), json);
          return { output: parseJson<Output>(json) };
        }),
      );
    },
  };
}

const toDeadline = () => performance.now() + TRANSACTION_TIMEOUT_MS;

interface InteractiveTransactions<Prisma> {
  $transaction<Result>(
    work: (transaction: Transaction<Prisma>) => Promise<Result>,
    options: { readonly maxWait: number; readonly timeout: number },
  ): Promise<Result>;
}

async function transact<Result, Prisma>(
  { loadPrisma, inSchema }: Pick<Database<Prisma>, 'loadPrisma' | 'inSchema'>,
  deadline: number,
  work: Change<Result, Prisma>,
): Promise<Result> {
  const prisma = (await loadPrisma()) as Prisma & InteractiveTransactions<Prisma>;
  const readLeftMs = () => Math.max(1, Math.floor(deadline - performance.now()));
  const inTime = async (transaction: Transaction<Prisma>) => {
    if (performance.now() >= deadline)
      throw new TimeoutError(`No transaction within ${TRANSACTION_TIMEOUT_MS} ms`);
    return withTimeout(
      readLeftMs(),
      work(transaction, createLocks(transaction as unknown as AnyPrisma, inSchema)),
    );
  };
  // Prisma's `timeout` begins when `maxWait` has ended. Both together could take twice what is left, so the work has a timeout
  // of its own.
  return prisma
    .$transaction(inTime, { maxWait: readLeftMs(), timeout: readLeftMs() })
    .catch((error: unknown) => {
      // An id that is stored already is nobody's fault here: the next attempt draws another one. See createInsert.
      throw readUniqueViolation(error).endsWith('_pkey') ? new DatabaseOutage(error) : error;
    });
}

function createLocks(transaction: AnyPrisma, inSchema: InSchema): Locks {
  return {
    async lockRow(tableName, id) {
      const sql = `SELECT true AS found FROM ${inSchema(tableName)} WHERE id = $1 FOR UPDATE`;
      return (await transaction.$queryRawUnsafe<unknown[]>(sql, id)).length > 0;
    },
    async takeTurn(tableName) {
      const sql = takeTurnSql(tableName, inSchema);
      if ((await transaction.$queryRawUnsafe<unknown[]>(sql)).length === 0)
        throw new TypeError(`insert_turns lacks the table ${tableName}: its migration adds the row`);
    },
  };
}

/** The lock is a statement of its own: only a statement that begins after it sees what the last holder has stored. */
function createKeyedStatements(inSchema: InSchema) {
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
    throw new TypeError('A create resolves with what its operation returns, and this one with nothing');
  return json;
}

function parseJson<Output>(json: string): Output {
  return JSON.parse(json);
}
