import { tracingChannel } from 'node:diagnostics_channel';
import pLimit, { type LimitFunction } from 'p-limit';
import pg from 'pg';
import { CONNECT_TIMEOUT_MS, measure, TimeoutError } from '../timing/timeouts.js';
import { isSessionStale } from './outage.js';
import { Pool, type PoolConfig } from './pool.js';
import { applySettings, type SessionSettings } from './session-settings.js';

/** PostgreSQL parses and plans a statement once per connection, under its name. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  /** Only some of the statements on one table run at once: see limitByTable. Default: no limit */
  readonly table?: string;
}

/** Traces each statement on PostgreSQL. Nothing is published without subscribers. */
const statementChannel = tracingChannel<unknown, { readonly name: string; readonly text?: string }>(
  'animal-store.statement',
);

/** Runs a statement that subscribers of the channel see. Of Prisma's statements, only the name is known. */
export function traceStatement<T>(run: () => Promise<T>, name: string, text?: string): Promise<T> {
  return statementChannel.hasSubscribers
    ? statementChannel.tracePromise(run, { name, ...(text !== undefined && { text }) })
    : run();
}

/** A statement that readiness tries. */
export interface CheckedStatement extends Statement {
  /** Values for which there are no rows */
  readonly emptyValues: readonly unknown[];
  /** Whether readiness only plans the statement, because it writes or is one of many */
  readonly isOnlyPlanned?: boolean;
  /** Whether it takes the turn of its table to insert rows */
  readonly takesTurn?: boolean;
}

export type StatementPool = Readonly<ReturnType<typeof createStatementPool>>;

interface StatementPoolOptions {
  /** How many statements on one table may run at once. Default: no limit */
  readonly maxPerTable?: number | undefined;
  /** Called with the duration and the name of each statement */
  readonly observe?: ((seconds: number, statement: string) => void) | undefined;
}

/**
 * Runs named statements, each a transaction of its own.
 *
 * @param config of the pool
 */
export function createStatementPool(
  config: PoolConfig,
  settings: SessionSettings,
  { maxPerTable = Number.POSITIVE_INFINITY, observe }: StatementPoolOptions = {},
) {
  const withNames = new WeakSet<pg.ClientBase>();
  const onConnect = async (client: pg.ClientBase) => {
    if (await supportsNames(client, await applySettings(client, settings))) withNames.add(client);
  };
  // A new connection would have to plan the statements again.
  const pool = new Pool({ ...config, idleTimeoutMillis: 0, onConnect });
  /** Connections on which a statement has worked. If one fails there later, others may have changed the session meanwhile. */
  const used = new WeakSet<pg.ClientBase>();
  const checked = new Map<string, CheckedStatement>();
  const limit = limitByTable(maxPerTable);
  const runNow = async <Row extends pg.QueryResultRow>(
    { name, text }: Statement,
    values: readonly unknown[],
  ): Promise<Row[]> => {
    for (;;) {
      const client = await pool.connect();
      try {
        const rows = await runQuery<Row>(client, text, values, withNames.has(client) ? name : undefined);
        used.add(client);
        client.release();
        return rows;
      } catch (error) {
        // The error was created where the response arrived. A stack that shows the caller of the query is more useful.
        Error.captureStackTrace(error as Error);
        const isStale = used.has(client) && isSessionStale(error);
        // After a statement that PostgreSQL rejected, the connection is as good as before.
        client.release(error instanceof pg.DatabaseError && !isStale ? undefined : (error as Error));
        if (!isStale) throw error;
      }
    }
  };
  const run: typeof runNow = (statement, values) => limit(statement.table, () => runNow(statement, values));
  return {
    pool,
    /**
     * The rows of a statement. May fail with a database error: see isDatabaseOutage. A statement that fails because others have
     * changed its session or the schema is repeated on other connections, at the latest on a new one, whose error counts.
     */
    query: <Row extends pg.QueryResultRow>(statement: Statement, values: readonly unknown[]) =>
      measure(
        (seconds) => observe?.(seconds, statement.name),
        () => traceStatement(() => run<Row>(statement, values), statement.name, statement.text),
      ),
    /** Lets `check` try a statement from now on. @throws TypeError when another one has its name */
    register(...statements: readonly CheckedStatement[]) {
      for (const statement of statements) {
        const { name, text } = statement;
        if ((checked.get(name)?.text ?? text) !== text)
          throw new TypeError(
            `Two statements are named ${name}: a table has one createReads, createInsert and createChange, whose rules know what is given.`,
          );
        checked.set(name, statement);
      }
    },
    /** The tables into which registered statements insert in turn. */
    listTurns: () => [
      ...new Set([...checked.values()].flatMap(({ table, takesTurn }) => (takesTurn && table) || [])),
    ],
    /** Tries registered statements, on all connections at once, because each round trip takes long while the event loop lags. */
    check: () =>
      Promise.all(
        [...checked.values()]
          .filter(({ isOnlyPlanned = false }) => !isOnlyPlanned)
          .map(({ emptyValues, isOnlyPlanned: _, ...each }) => run(each, emptyValues)),
      ),
    /**
     * SQL that plans the other statements. Planning needs the same rights, tables and types, but neither takes a turn among
     * the inserts nor fails on a read-only server.
     */
    describePlans: () =>
      [...checked.values()]
        .filter(({ isOnlyPlanned }) => isOnlyPlanned)
        .map(toPlan)
        .join(';'),
  };
}

/**
 * Returns a function that runs at most `max` statements on one table at once. While a table is locked, the other connections of
 * the pool are left to other tables. A statement that has waited longer than CONNECT_TIMEOUT_MS is rejected, and never sent.
 */
export function limitByTable(max: number) {
  const limits = new Map<string, LimitFunction>();
  return <Result>(table: string | undefined, run: () => Promise<Result>): Promise<Result> => {
    if (table === undefined) return run();
    const limit = limits.get(table) ?? pLimit(max);
    limits.set(table, limit);
    const since = performance.now();
    return limit(() => {
      if (performance.now() - since > CONNECT_TIMEOUT_MS)
        throw new TimeoutError(`Other statements on ${table} took longer than ${CONNECT_TIMEOUT_MS} ms`);
      return run();
    });
  };
}

const toPlan = ({ text, emptyValues }: CheckedStatement) =>
  `EXPLAIN ${text.replace(/\$(\d+)/g, (_, number) => pg.escapeLiteral(String(emptyValues[number - 1])))}`;

/**
 * Runs a query as `client.query` does with an object, but without first copying the object, property by property, which
 * takes 2 to 3 % of the CPU of a lone request.
 */
function runQuery<Row extends pg.QueryResultRow>(
  client: pg.ClientBase,
  text: string,
  values: readonly unknown[],
  name: string | undefined,
): Promise<Row[]> {
  return new Promise((resolve, reject) => {
    const query = new pg.Query<Row>(text, [...values], (error, result) =>
      error ? reject(error) : resolve(result.rows),
    );
    client.query(Object.assign(query, { name }));
  });
}

/** Shows whether PostgreSQL knows this statement under the name that it was sent with. */
const NAME_TEST = {
  name: 'name-test',
  text: "SELECT bool_or(name = 'name-test') AS is_unchanged FROM pg_prepared_statements",
};

/**
 * Whether statements can be prepared under a name. Behind a connection pooler in transaction mode each query may reach
 * another server process, which lacks a statement that was prepared before, or has another one under its name.
 *
 * A pooler announces a process that is not `pid`, which runs the queries. From 1.21 on, PgBouncer prepares statements
 * wherever they are needed, under names of its own.
 */
async function supportsNames(client: pg.ClientBase, pid: unknown): Promise<boolean> {
  const { processID } = client as pg.ClientBase & { readonly processID: number };
  if (pid === processID) return true;
  // Fails where another client of the pooler has prepared it.
  const named = await client.query<{ is_unchanged: boolean }>(NAME_TEST).catch(() => undefined);
  return named?.rows[0]?.is_unchanged === false;
}
