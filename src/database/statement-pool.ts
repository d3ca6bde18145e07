import './javascript-client.js';
import pg from 'pg';
import { measure } from '../batching/timeouts.js';
import { applySettings, type SessionSettings } from './session-settings.js';

/** PostgreSQL parses and plans a statement once per connection, under its name. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

export type StatementPool = Readonly<ReturnType<typeof createStatementPool>>;

/**
 * Runs named statements, each a transaction of its own.
 *
 * @param config of the pool
 * @param observe called with what each statement took, and its name
 */
export function createStatementPool(
  config: pg.PoolConfig,
  settings: SessionSettings,
  observe?: (seconds: number, statement: string) => void,
) {
  const withNames = new WeakSet<pg.ClientBase>();
  const pool = new pg.Pool({
    ...config,
    // A new connection would have to plan the statements again.
    idleTimeoutMillis: 0,
    async onConnect(client) {
      // When it breaks, its query gets the error; without a listener, the process would end besides.
      client.on('error', () => {});
      if (await supportsNames(client, await applySettings(client, settings))) withNames.add(client);
    },
  });
  return {
    pool,
    /** The rows of a statement. May fail with a database error: see isDatabaseOutage. */
    query: <Row extends pg.QueryResultRow>({ name, text }: Statement, values: readonly unknown[]) =>
      measure(
        (seconds) => observe?.(seconds, name),
        async () => {
          const client = await pool.connect();
          const query = { text, values: [...values], name: withNames.has(client) ? name : undefined };
          try {
            const { rows } = await client.query<Row>(query);
            client.release();
            return rows;
          } catch (error) {
            // After a statement that PostgreSQL rejected, the connection is as good as before.
            client.release(error instanceof pg.DatabaseError ? undefined : (error as Error));
            throw error;
          }
        },
      ),
  };
}

/** Shows whether PostgreSQL knows this statement under the name that it was sent with. */
const NAME_TEST = {
  name: 'name-test',
  text: "SELECT pg_catalog.bool_or(name = 'name-test') AS is_unchanged FROM pg_catalog.pg_prepared_statements",
};

/**
 * Whether statements can be prepared under a name. Behind a connection pooler in transaction mode each query may reach
 * another server process, which lacks a statement that was prepared before, or has another one under its name.
 *
 * A pooler announces another process than the one that runs the queries, `pid`. PgBouncer from 1.21 on prepares statements
 * wherever they are needed, under names of its own.
 */
async function supportsNames(client: pg.ClientBase, pid: unknown): Promise<boolean> {
  const { processID } = client as pg.ClientBase & { readonly processID: number };
  if (pid === processID) return true;
  // Fails where another client of the pooler has prepared it.
  const named = await client.query<{ is_unchanged: boolean }>(NAME_TEST).catch(() => undefined);
  return named?.rows[0]?.is_unchanged === false;
}
