import pg from 'pg';
import { IDENTITY } from '#store/identity.js';
import { CONNECT_TIMEOUT_MS, QUERY_TIMEOUT_MS } from '../timing/timeouts.js';
import { createInSchema, schemaOf, searchPathOf } from './schema-name.js';
import { applySettings, SESSION_SETTINGS, STATEMENT_SETTINGS } from './session-settings.js';
import { createStatementPool } from './statement-pool.js';
import { checkDates, withReadableDates } from './value-types.js';

const MAX_POOL_CONNECTIONS = 4;
/** Key lookups have their own, so that neither a locked table nor a flood of unknown keys delays others. */
const KEY_CONNECTIONS = 2;
/** Two keep PostgreSQL as busy with reads as one Node.js process can; each further one makes the batches smaller. */
export const READ_CONNECTIONS = 2;
/** A rejected batch of rows is repeated row by row: PostgreSQL flushes together what several connections commit at once. */
const WRITE_CONNECTIONS = 4;
/** The message of pg's error for a query without a response, which has no code. */
const READ_TIMEOUT = 'Query read timeout';

export type Connections = Readonly<ReturnType<typeof openConnections>>;

/** For what needs the pool for its queries only */
export interface Queries {
  readonly pool: Pick<pg.Pool, 'query'>;
}

export interface ConnectionOptions {
  /** Default: what a request may wait */
  readonly connectTimeoutMs?: number | undefined;
  /** In place of the store's name and of what the URL says: what the connections show to others in the database */
  readonly applicationName?: string | undefined;
  /** Called with what each statement of reads, writes and keys took, and its name */
  readonly observe?: (seconds: number, statement: string) => void;
  /** Called with PostgreSQL's sentence when an insert no longer waits for its turn: see prisma/migrations */
  readonly onTurnGivenUp?: (sentence: string) => void;
}

/** The SQLSTATE of that warning */
const TURN_GIVEN_UP = '01T00';

/**
 * Opens the database lazily: nothing is sent before the first query, and an unavailable database shows as an error of
 * that query within connectTimeoutMs + QUERY_TIMEOUT_MS.
 *
 * @param url postgresql:// connection string
 * @param onIdleError called when a connection breaks while idle; the pool replaces it
 */
export function openConnections(
  url: string,
  onIdleError: (error: Error) => void,
  { connectTimeoutMs = CONNECT_TIMEOUT_MS, applicationName, observe, onTurnGivenUp }: ConnectionOptions = {},
) {
  const config = {
    connectionString: url,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: QUERY_TIMEOUT_MS,
    keepAlive: true,
    application_name: IDENTITY.name,
    types: withReadableDates(pg.types),
  };
  const schema = schemaOf(url);
  const own = {
    search_path: searchPathOf(schema),
    // As a setting, because pg prefers what a URL says.
    ...(applicationName !== undefined && { application_name: applicationName }),
  };
  const createStatements = (max: number, writes = false) =>
    createStatementPool({ ...config, max }, { ...STATEMENT_SETTINGS, ...own }, { observe, writes });
  /** For single statements that read */
  const reads = createStatements(READ_CONNECTIONS);
  /** For single statements that write */
  const writes = createStatements(WRITE_CONNECTIONS, true);
  /** For the lookup of API keys */
  const keys = createStatements(KEY_CONNECTIONS);
  /** For statements of every kind, and for Prisma */
  const pool = new pg.Pool({
    ...config,
    max: MAX_POOL_CONNECTIONS,
    async onConnect(connected) {
      checkDates(connected);
      await applySettings(connected, { ...SESSION_SETTINGS, ...own });
    },
  });
  pool.on('release', endOpenTransaction);
  const pools = [pool, reads.pool, writes.pool, keys.pool];
  let closing: Promise<unknown> | undefined;
  for (const each of pools) {
    each.on('error', onIdleError);
    each.on('connect', (client) =>
      client.on('notice', ({ code, message = '' }) => {
        if (code === TURN_GIVEN_UP) onTurnGivenUp?.(message);
      }),
    );
    each.on('release', (error) => {
      // When one connection is dead, the idle ones probably are too: a firewall lost its state.
      if (error?.message === READ_TIMEOUT) for (const other of pools) discardIdle(other);
    });
  }
  return {
    schema,
    inSchema: createInSchema(schema),
    pool,
    reads,
    writes,
    keys,
    /** Rejects when a statement that requests use does not work on a connection that they use. */
    async checkStatements() {
      await Promise.all([reads, writes, keys].map((each) => each.check()));
    },
    /** How many connections there are, how many are idle, and how many queries wait for one */
    countConnections: (kind: 'totalCount' | 'idleCount' | 'waitingCount') =>
      pools.reduce((total, pool) => total + pool[kind], 0),
    /** Opens a connection of each pool, so that the first requests need not wait for one. */
    async connect() {
      await Promise.all(pools.map(async (each) => (await each.connect()).release()));
    },
    /** May be called again. */
    async close() {
      closing ??= Promise.all(pools.map((each) => each.end()));
      await closing;
    },
  };
}

/**
 * Prisma returns a connection to the pool as healthy even when its COMMIT or ROLLBACK got no response in time. The
 * next query on it would run inside the open transaction, and be lost with it after it had been acknowledged.
 */
function endOpenTransaction(error: Error | undefined, client: pg.PoolClient & pg.Client): void {
  const status = client.getTransactionStatus();
  if (!error && (status === 'T' || status === 'E')) void client.end().catch(() => {});
}

/**
 * Ends the idle connections of a pool: it takes each one out and destroys it. When it is called twice in a row, it may ask
 * for more connections than are idle. The pool then opens new ones, and there is no client if that takes too long.
 */
function discardIdle(pool: pg.Pool): void {
  for (let count = pool.idleCount; count > 0; count -= 1) {
    pool.connect((_error, client) => client?.release(true));
  }
}
