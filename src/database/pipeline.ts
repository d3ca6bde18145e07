import { Socket } from 'node:net';
import pg from 'pg';

/** A statement with a name is parsed and planned once per connection. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

/**
 * Statements that are each a transaction of their own, on connections which are not waited for: one is sent behind those
 * that run (pipelining; PostgreSQL's manual, section 54.2.4), and those of one turn of the event loop leave in one write.
 * What a pool takes to hand connections out, and two system calls a query, are a third of a small read.
 */
export class Pipeline {
  readonly #lanes: readonly Lane[];

  /** At most so many connections, each made when all that are open are in use; `options` are those of a pg.Client. */
  constructor(lanes: number, options: pg.ClientConfig) {
    this.#lanes = Array.from({ length: lanes }, () => new Lane(options));
  }

  /** The rows of one statement. Fails as the database does; see isDatabaseOutage. */
  query<Row extends pg.QueryResultRow>(statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    return this.#lanes.reduce(fewerPending).query<Row>(statement, values);
  }

  /** How many connections are open */
  get connections(): number {
    return this.#lanes.filter((lane) => lane.isOpen).length;
  }

  /** How many queries stand behind another */
  get waiting(): number {
    return this.#lanes.reduce((sum, { pending }) => sum + Math.max(0, pending - 1), 0);
  }

  async close(): Promise<void> {
    await Promise.all(this.#lanes.map((lane) => lane.close()));
  }
}

function fewerPending(a: Lane, b: Lane): Lane {
  return b.pending < a.pending ? b : a;
}

/** By a callback: as a promise, pg catches each answer once more to give its stack another beginning. */
function ask<Row extends pg.QueryResultRow>(client: pg.Client, query: pg.QueryConfig): Promise<Row[]> {
  return new Promise((resolve, reject) => {
    client.query<Row>(query, (error, result) => (error ? reject(error) : resolve(result.rows)));
  });
}

/** One connection, made anew by the first query after it broke. */
class Lane {
  readonly #options: pg.ClientConfig;
  #socket: Socket | undefined;
  #client: Promise<pg.Client> | undefined;
  /** Queries whose answer is awaited */
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
      this.#writeTogether();
      return await ask<Row>(client, { ...statement, values: values as unknown[] });
    } finally {
      this.pending -= 1;
    }
  }

  /** Holds back what is written until the event loop has seen to all that has come in. */
  #writeTogether(): void {
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
    // A connection may end long after it was given up, when another stands in its place already.
    const forget = () => {
      if (this.#client !== opened) return;
      this.isOpen = false;
      this.#client = undefined;
    };
    client.once('end', forget);
    // Every query that was under way is told too.
    client.on('error', forget);
    opened.catch(forget);
    return opened;
  }
}
