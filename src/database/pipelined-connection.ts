import { Socket } from 'node:net';
import pg from 'pg';
import { TimeoutError } from '../batching/timeouts.js';

/** PostgreSQL parses and plans a statement once per connection, under its name. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

export interface PipelinedConnectionOptions {
  readonly client: pg.ClientConfig;
  /** SQL that runs before the first query */
  readonly sessionSettings: string | undefined;
  /** Called when a statement has its result, with what that took and its name */
  readonly onResponse: (seconds: number, statement: string) => void;
}

/** A connection without a response for this many ticks is slow. One tick may be much shorter than the others. */
const SLOW_AFTER_TICKS = 2;

/** Shows whether PostgreSQL knows this statement under the name that it was sent with. */
const PROBE = {
  name: 'probe',
  text: "SELECT bool_or(name = 'probe') AS is_unchanged FROM pg_prepared_statements",
};

/** One connection of a pipeline. After it breaks, the next query opens a new one. */
export class PipelinedConnection {
  readonly #options: PipelinedConnectionOptions;
  #socket: Socket | undefined;
  #opening: Promise<pg.Client> | undefined;
  /** Undefined until the connection is open */
  #client: pg.Client | undefined;
  #silentTicks = 0;
  #isSlow = false;
  #supportsNames = false;
  /** Queries still without a result */
  pending = 0;
  /** When the last response arrived, by performance.now() */
  lastResponseAt = 0;
  /** Since when the pending queries have been without a response, by performance.now() */
  silentSince = 0;

  constructor(options: PipelinedConnectionOptions) {
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#client !== undefined;
  }

  /** Whether it takes another query. After it was slow, it takes one at a time until one is answered quickly. */
  get isFree(): boolean {
    return !this.#isSlow || this.pending === 0;
  }

  async query<Row extends pg.QueryResultRow>(
    statement: Statement,
    values: readonly unknown[],
  ): Promise<Row[]> {
    const startedAt = performance.now();
    if (this.pending === 0) this.silentSince = startedAt;
    this.pending += 1;
    try {
      const client = this.#client ?? (await this.#open());
      const { name, text } = statement;
      const query = { text, values: values as unknown[] };
      return await send<Row>(client, this.#supportsNames ? { ...query, name } : query);
    } finally {
      this.pending -= 1;
      this.#noteResponse();
      this.#options.onResponse((this.lastResponseAt - startedAt) / 1000, statement.name);
    }
  }

  /** Called at regular intervals. Returns for how many of them the pending queries have been without a response. */
  tick(): number {
    this.#silentTicks = this.pending === 0 ? 0 : this.#silentTicks + 1;
    if (this.#silentTicks >= SLOW_AFTER_TICKS) this.#isSlow = true;
    return this.#silentTicks;
  }

  /** Ends the connection without waiting for the server. Pending queries are rejected. */
  discard(): void {
    const socket = this.#socket;
    this.#forget();
    socket?.destroy(new TimeoutError('The connection to the database does not respond'));
  }

  async close(): Promise<void> {
    const client = await this.#opening?.catch(() => undefined);
    await client?.end().catch(() => {});
  }

  #noteResponse(): void {
    if (this.#silentTicks < SLOW_AFTER_TICKS) this.#isSlow = false;
    this.#silentTicks = 0;
    this.lastResponseAt = performance.now();
    this.silentSince = this.lastResponseAt;
  }

  #open(): Promise<pg.Client> {
    this.#opening ??= this.#connect();
    return this.#opening;
  }

  #connect(): Promise<pg.Client> {
    const socket = new Socket();
    this.#socket = socket;
    const client = new pg.Client({ ...this.#options.client, pipeline: true, stream: () => socket });
    const opening = this.#start(client).then(() => {
      this.#silentTicks = 0;
      this.lastResponseAt = performance.now();
      if (this.#opening === opening) this.#client = client;
      return client;
    });
    // A connection may end long after it was abandoned, when another has already replaced it.
    const forgetIfCurrent = () => {
      if (this.#opening === opening) this.#forget();
    };
    client.once('end', forgetIfCurrent);
    // Every pending query gets the error too.
    client.on('error', forgetIfCurrent);
    opening.catch(forgetIfCurrent);
    return opening;
  }

  #forget(): void {
    this.#socket = undefined;
    this.#opening = undefined;
    this.#client = undefined;
  }

  async #start(client: pg.Client): Promise<void> {
    const { sessionSettings = '' } = this.#options;
    await client.connect();
    try {
      this.#supportsNames = await supportsNames(client, sessionSettings);
    } catch (error) {
      void client.end().catch(() => {});
      throw error;
    }
  }
}

/**
 * Whether statements can be prepared under a name. Behind a connection pooler in transaction mode each query may reach
 * another server process, which lacks a statement that was prepared before, or has another one under its name.
 *
 * A pooler announces another process than the one that runs the queries. PgBouncer from 1.21 on prepares statements
 * wherever they are needed, under names of its own.
 *
 * @param sessionSettings SQL that runs before
 */
async function supportsNames(client: pg.Client, sessionSettings: string): Promise<boolean> {
  const results: unknown = await client.query(`${sessionSettings}; SELECT pg_backend_pid() AS pid`);
  const [last] = [results].flat().slice(-1) as pg.QueryResult<{ pid: number }>[];
  const { processID } = client as pg.Client & { readonly processID: number };
  if (last?.rows[0]?.pid === processID) return true;
  // Fails where another client of the pooler has prepared it.
  const named = await client.query<{ is_unchanged: boolean }>(PROBE).catch(() => undefined);
  return named?.rows[0]?.is_unchanged === false;
}

/** Uses pg's callbacks, because its promises catch and rethrow every error to rewrite its stack. */
function send<Row extends pg.QueryResultRow>(client: pg.Client, query: pg.QueryConfig): Promise<Row[]> {
  return new Promise((resolve, reject) => {
    client.query<Row>(query, (error, result) => (error ? reject(error) : resolve(result.rows)));
  });
}
