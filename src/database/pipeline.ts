import { Socket } from 'node:net';
import pg from 'pg';
import { measure } from '../durations.js';

/** A statement with a name is parsed and planned once per connection. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

/**
 * Runs single-statement transactions on pipelined connections: a statement is sent without waiting for those before it
 * (PostgreSQL's manual, section 54.2.4), and those of one event-loop tick leave in one write. Handing out connections
 * from a pool, and two system calls per query, would make up a third of the cost of a small read.
 */
export class Pipeline {
  readonly #connections: readonly PipelinedConnection[];
  readonly #observe: (seconds: number, statement: string) => void;

  /**
   * Opens at most `size` connections, each when those before it are busy; `options` are those of a pg.Client.
   *
   * @param observe called with what each statement took, and its name
   */
  constructor(
    size: number,
    options: pg.ClientConfig,
    observe: (seconds: number, statement: string) => void = () => {},
  ) {
    this.#observe = observe;
    this.#connections = Array.from({ length: size }, () => new PipelinedConnection(options));
  }

  /** The rows of one statement. May fail with a database error: see isDatabaseOutage. */
  query<Row extends pg.QueryResultRow>(statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    const connection = this.#connections.reduce(lessBusy);
    return measure(
      (seconds) => this.#observe(seconds, statement.name),
      () => connection.query<Row>(statement, values),
    );
  }

  /** How many connections are open */
  get connections(): number {
    return this.#connections.filter(({ isOpen }) => isOpen).length;
  }

  /** How many queries wait behind another */
  get waiting(): number {
    return this.#connections.reduce((sum, { pending }) => sum + Math.max(0, pending - 1), 0);
  }

  async close(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()));
  }
}

function lessBusy(a: PipelinedConnection, b: PipelinedConnection): PipelinedConnection {
  return b.pending < a.pending ? b : a;
}

/** Uses pg's callbacks, because its promises catch and rethrow every error to rewrite its stack. */
function send<Row extends pg.QueryResultRow>(client: pg.Client, query: pg.QueryConfig): Promise<Row[]> {
  return new Promise((resolve, reject) => {
    client.query<Row>(query, (error, result) => (error ? reject(error) : resolve(result.rows)));
  });
}

/** One connection. After it breaks, the next query opens a new one. */
class PipelinedConnection {
  readonly #options: pg.ClientConfig;
  #socket: Socket | undefined;
  #client: Promise<pg.Client> | undefined;
  /** Queries still without a result */
  pending = 0;
  isOpen = false;

  constructor(options: pg.ClientConfig) {
    this.#options = options;
  }

  async query<Row extends pg.QueryResultRow>(
    statement: Statement,
    values: readonly unknown[],
  ): Promise<Row[]> {
    this.pending += 1;
    try {
      this.#client ??= this.#connect();
      const client = await this.#client;
      this.#corkUntilEndOfTick();
      return await send<Row>(client, { ...statement, values: values as unknown[] });
    } finally {
      this.pending -= 1;
    }
  }

  /** Sends everything written in this event-loop tick with one system call. */
  #corkUntilEndOfTick(): void {
    const socket = this.#socket;
    if (socket === undefined || socket.writableCorked > 0) return;
    socket.cork();
    setImmediate(() => socket.uncork());
  }

  async close(): Promise<void> {
    const client = await this.#client?.catch(() => undefined);
    await client?.end().catch(() => {});
  }

  #connect(): Promise<pg.Client> {
    const socket = new Socket();
    const client = new pg.Client({ ...this.#options, pipeline: true, stream: () => socket });
    const opened = client.connect().then(() => {
      this.#socket = socket;
      this.isOpen = true;
      return client;
    });
    // A connection may end long after it was abandoned, when another has already replaced it.
    const discard = () => {
      if (this.#client !== opened) return;
      this.isOpen = false;
      this.#client = undefined;
    };
    client.once('end', discard);
    // Every pending query gets the error too.
    client.on('error', discard);
    opened.catch(discard);
    return opened;
  }
}
