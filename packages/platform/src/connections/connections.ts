import pg from 'pg';
import { CONNECT_TIMEOUT_MS, measure, QUERY_TIMEOUT_MS } from '../timing/timeouts.js';
import { divideConnections } from './connection-limit.js';
import { Pool } from './pool.js';
import { createInSchema, schemaOf, searchPathOf } from './schema-name.js';
import {
  applySettings,
  INDEX_JOINS,
  SESSION_SETTINGS,
  type SessionSettings,
  STATEMENT_SETTINGS,
} from './session-settings.js';
import { createSharedLimit } from './shared-limit.js';
import { checkPrimary } from './standby.js';
import { createStatementPool, type Statement, traceStatement } from './statement-pool.js';
import { withStatementTimeout } from './statement-timeout.js';

/** Two connections are all that one process needs to keep PostgreSQL busy with reads; more only make batches smaller. */
export const READS_PER_TABLE = 2;
/** Creates of one table take turns. A second create would only wait, and keep other processes from their turn. */
const WRITES_PER_TABLE = 1;

export type Connections = Readonly<ReturnType<typeof openConnections>>;

/** For code that only runs queries on the pool */
export interface Queries {
  readonly pool: Pick<pg.Pool, 'query'>;
}

export interface ConnectionOptions {
  /** Default: what a request may wait */
  readonly connectTimeoutMs?: number | undefined;
  /** Called for each new connection, because the password in the URL may have changed */
  readonly readUrl?: () => string;
  /** The application_name of a URL that has none. */
  readonly name?: string | undefined;
  /** Replaces both */
  readonly applicationName?: string | undefined;
  /** Called with the duration and the name of each named statement */
  readonly observe?: (seconds: number, statement: string) => void;
  /** Called at most once an hour when the server refuses a further connection: `count` are open of `most` */
  readonly onRefused?: ((error: Error, count: number, most: number) => void) | undefined;
}

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
  options: ConnectionOptions = {},
) {
  const schema = schemaOf(url);
  const { shared, pool, reads, writes, keys } = openPools(url, schema, options);
  for (const each of shared.pools) each.on('error', onIdleError);
  let closing: Promise<unknown> | undefined;
  return {
    schema,
    inSchema: createInSchema(schema),
    pool,
    reads,
    writes,
    keys,
    queryWaiting: createQueryWaiting(pool, options.observe),
    /**
     * Rejects when a pool has no connection and gets none, or a statement that requests use does not work. Writes
     * nothing. Statements that write are planned on connections that read, because requests may keep the others waiting
     * for a standby or a locked row.
     */
    async checkStatements() {
      await Promise.all([
        shared.openEmpty(),
        checkPrimary(reads.pool),
        ...[reads, keys].map((each) => each.check()),
        reads.pool.query([reads, writes].map((each) => each.describePlans()).join(';')),
        // Prisma's transactions do not work behind a pooler that handles each statement by itself.
        tryTransaction(reads.pool),
        // Something on the way, such as a firewall, might cut off a connection that is silent for long. A pool without a
        // free connection is left out, because this query would wait behind requests that wait for a row.
        ...[pool, writes.pool].map((each) => isFree(each) && each.query('SELECT 1')),
      ]);
    },
    /** How many connections there are, how many are idle, and how many queries wait for one */
    countConnections: (kind: 'totalCount' | 'idleCount' | 'waitingCount') =>
      shared.pools.reduce((total, each) => total + each[kind], 0),
    /** Opens a connection of each pool, so that the first requests do not wait for one: for a service. */
    connect: shared.connect,
    /** May be called again. */
    async close() {
      closing ??= Promise.all(shared.pools.map((each) => each.end()));
      await closing;
    },
  };
}

/** The pools by what they are for, so that what waits in one keeps nothing else waiting, and what they share */
function openPools(url: string, schema: string, options: ConnectionOptions) {
  const { connectTimeoutMs = CONNECT_TIMEOUT_MS, name, applicationName, observe } = options;
  const { readUrl = () => url } = options;
  class Client extends pg.Client {
    constructor(given?: pg.ClientConfig) {
      super({ ...given, connectionString: readUrl() });
      // When a connection breaks, the next query on it gets the error. The pools listen only while a connection is idle, and
      // without a listener the event ends the process.
      this.on('error', () => {});
    }
  }
  const shared = createSharedLimit((...refusal) => options.onRefused?.(...refusal));
  const config = {
    Client,
    limit: shared.limit,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: QUERY_TIMEOUT_MS,
    keepAlive: true,
    application_name: name,
  };
  const own = {
    search_path: searchPathOf(schema),
    // Applied as a setting, because pg prefers the name in a URL.
    ...(applicationName !== undefined && { application_name: applicationName }),
  };
  const sizes = divideConnections(url);
  const openStatements = (max: number, maxPerTable?: number, further?: SessionSettings) => {
    const settings = { ...STATEMENT_SETTINGS, ...further, ...own };
    return createStatementPool({ ...config, max }, settings, { maxPerTable, observe });
  };
  const onConnect = (client: pg.ClientBase) => applySettings(client, { ...SESSION_SETTINGS, ...own });
  return {
    shared,
    /** For statements that may wait for a locked row, Prisma's and those of commands */
    pool: new Pool({ ...config, max: sizes.prisma, onConnect }),
    /** For single statements that read. One table, which may be locked, leaves a connection to others. */
    reads: openStatements(sizes.reads, Math.max(1, Math.min(READS_PER_TABLE, sizes.reads - 1))),
    /** For single statements that write */
    writes: openStatements(sizes.writes, WRITES_PER_TABLE, INDEX_JOINS),
    /** For the lookup of API keys */
    keys: openStatements(sizes.keys),
  };
}

/**
 * Returns what queries the rows of a statement that may wait for a locked row, as long as there is time left. The statement is
 * planned each time, and runs twice if its rows are not final: see withStatementTimeout.
 */
const createQueryWaiting =
  (pool: Pool, observe: ConnectionOptions['observe']) =>
  <Row extends pg.QueryResultRow>(
    { name, text }: Statement,
    values: unknown[],
    readLeftMs: () => number,
    isFinal: (rows: unknown[]) => boolean,
  ) => {
    const run = async () =>
      (await withStatementTimeout(pool, readLeftMs, { isFinal }).query<Row>(text, values)).rows;
    return measure(
      (seconds) => observe?.(seconds, name),
      () => traceStatement(run, name, text),
    );
  };

/** Whether a query would get a connection at once */
const isFree = ({ idleCount, waitingCount }: pg.Pool) => idleCount > waitingCount;

async function tryTransaction(pool: pg.Pool): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    await client.query('COMMIT');
  } finally {
    client.release();
  }
}
