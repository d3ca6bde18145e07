import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { readCode } from './outage.js';

/** SQLSTATE too_many_connections: of the server, the database or the role. */
export const TOO_MANY_CONNECTIONS = '53300';
/** How long a pool goes on with the connections that it has after it was refused a further one. */
const RETRY_AFTER_MS = 2_000;
/** The message of pg's error for a query without a response, which has no code. */
const READ_TIMEOUT = 'Query read timeout';
/** How often the server is asked about processes that may still be at work. */
const ASK_INTERVAL_MS = 300;

/** Only busy backends: an idle one sees by itself that its connection is gone. */
const FIND_BUSY = `
  SELECT pid FROM pg_stat_activity
  WHERE pid = ANY ($1) AND usename = current_user AND state IS DISTINCT FROM 'idle'`;

type Callback = Parameters<pg.Pool['connect']>[0];

/** With its size, and perhaps a class of connections and what it shares with other pools */
export type PoolConfig = Omit<pg.PoolConfig, 'Client'> & {
  readonly max: number;
  readonly Client?: new (config?: pg.ClientConfig) => pg.Client;
  readonly limit?: PoolLimit;
};

/** What the pools of a process share, because the server limits all of them together. */
export interface PoolLimit {
  /** Called by the constructor of each pool */
  add(pool: Pool): void;
  /** Whether a pool may open a further connection now */
  mayGrow(): boolean;
  /** Called when the server allows no further connection */
  noteRefusal(error: Error): void;
}

const NO_OTHERS: PoolLimit = { add() {}, mayGrow: () => true, noteRefusal() {} };

/**
 * A pool of pg that stays within what the server has and allows.
 *
 * ## Refused connections
 * Where the server allows no further connection, the pool goes on with those that it has. A caller that asked for one
 * then waits for another's, and gets the refusal only if the pool has none.
 *
 * ## Orphaned backends
 * When a response does not come, this process closes the connection, but PostgreSQL may go on: a commit that waits for a
 * standby ends neither by `statement_timeout` nor because its client is gone. Such a server process keeps its place in the
 * pool until the server says, over a connection of its own, that it has ended. So a pool has at most its size of them, and
 * one more that asks.
 *
 * A process that the server does not know as busy was cut off instead, by a firewall that lost its state perhaps. Then the
 * idle connections of the pool probably are dead, too, and are replaced.
 */
export class Pool extends pg.Pool {
  /** With how many connections the pool was opened */
  readonly size: number;
  readonly #config: pg.PoolConfig & Pick<PoolConfig, 'Client'>;
  readonly #limit: PoolLimit;
  /** The numbers of server processes that keep a place in the pool, although it has closed their connections */
  readonly #orphans = new Set<number>();
  #isAsking = false;
  #borrowed = 0;
  #retryAtMs = Number.NEGATIVE_INFINITY;

  constructor({ limit = NO_OTHERS, ...config }: PoolConfig) {
    super({ ...config, min: 1 });
    this.#config = config;
    this.#limit = limit;
    this.size = config.max;
    limit.add(this);
    this.on('acquire', () => (this.#borrowed += 1));
    this.on('release', (error, client) => {
      this.#borrowed -= 1;
      if (error?.message === READ_TIMEOUT || endOpenTransaction(error, client)) this.#addOrphan(client);
    });
  }

  /** Whether it has no connection, nor one that its server process still keeps */
  get isEmpty(): boolean {
    return this.held + this.#orphans.size === 0;
  }

  /** Connections that work, idle or in use */
  get held(): number {
    return this.idleCount + this.#borrowed;
  }

  override connect(): Promise<pg.PoolClient>;
  override connect(callback: Callback): void;
  override connect(callback?: Callback) {
    if (callback === undefined)
      return new Promise((resolve, reject) => {
        this.connect((error, client) => (client === undefined ? reject(error) : resolve(client)));
      });
    super.connect((error, client, release) => {
      if (error === undefined || readCode(error) !== TOO_MANY_CONNECTIONS) {
        callback(error, client, release);
        return;
      }
      this.#retryAtMs = performance.now() + RETRY_AFTER_MS;
      this.#limit.noteRefusal(error);
      if (this.held > 0) this.connect(callback);
      else callback(error, client, release);
    });
    return undefined;
  }

  /** Whether it may open no further connection now. pg-pool asks its own method of this name before it opens one. */
  _isFull(): boolean {
    const mayGrow = performance.now() >= this.#retryAtMs && this.#limit.mayGrow();
    const most = mayGrow ? this.size : Math.max(1, this.held);
    return this.totalCount >= Math.min(most, this.size - this.#orphans.size);
  }

  #addOrphan(client: pg.PoolClient): void {
    this.#orphans.add((client as pg.PoolClient & { readonly processID: number }).processID);
    if (!this.#isAsking) void this.#askUntilEnded();
  }

  async #askUntilEnded(): Promise<void> {
    this.#isAsking = true;
    while (this.#orphans.size > 0 && !this.ending) {
      const asked = [...this.#orphans];
      // Without an answer, all of them count as busy.
      const busy = await findBusy(this.#config, asked).catch(() => new Set(asked));
      const gone = asked.filter((pid) => !busy.has(pid));
      for (const pid of gone) this.#orphans.delete(pid);
      if (gone.length > 0) discardIdle(this);
      if (this.#orphans.size > 0) await delay(ASK_INTERVAL_MS, undefined, { ref: false });
    }
    this.#isAsking = false;
  }
}

/**
 * Prisma returns a connection to the pool as healthy even when its COMMIT or ROLLBACK got no response in time. The
 * next query on it would run inside the open transaction, and be lost with it after it had been acknowledged.
 */
function endOpenTransaction(error: unknown, client: pg.PoolClient): boolean {
  const status = client.getTransactionStatus();
  if (error || (status !== 'T' && status !== 'E')) return false;
  void client.end().catch(() => {});
  return true;
}

async function findBusy(
  config: Omit<PoolConfig, 'max'>,
  pids: readonly number[],
): Promise<ReadonlySet<number>> {
  const client = new (config.Client ?? pg.Client)(config);
  try {
    await client.connect();
    const { rows } = await client.query<{ pid: number }>(FIND_BUSY, [pids]);
    return new Set(rows.map(({ pid }) => pid));
  } finally {
    void client.end().catch(() => {});
  }
}

/**
 * Ends the idle connections of a pool: it takes each one out and destroys it. Called twice in a row, it may take more than
 * were idle; the pool then opens new ones, which are closed as well. If opening takes too long, there is no client to close.
 */
function discardIdle(pool: pg.Pool): void {
  for (let count = pool.idleCount; count > 0; count -= 1) {
    pool.connect((_error, client) => client?.release(true));
  }
}
