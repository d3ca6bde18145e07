import type pg from 'pg';
import { QUERY_TIMEOUT_MS, TimeoutError } from '../batching/timeouts.js';
import { PipelinedConnection, type Statement } from './pipelined-connection.js';

/** How often a pipeline looks for connections that do not respond. */
const TICK_MS = 100;
const TIMEOUT_TICKS = QUERY_TIMEOUT_MS / TICK_MS;

export interface PipelineOptions {
  /** Opens at most this many connections, each when those before it are busy */
  readonly size: number;
  /** Of every connection */
  readonly client: pg.ClientConfig;
  /** SQL that a connection runs before its first query */
  readonly sessionSettings?: string;
  /**
   * Called when a connection has not responded for QUERY_TIMEOUT_MS, and has been discarded.
   *
   * @param since when it was last known to respond, or to have nothing to respond to, by performance.now()
   */
  readonly onStall?: (since: number) => void;
  /** Called with what each statement took, and its name */
  readonly observe?: (seconds: number, statement: string) => void;
}

interface QueuedQuery {
  readonly run: (connection: PipelinedConnection) => void;
  readonly reject: (error: Error) => void;
  ticks: number;
}

/**
 * Runs single-statement transactions on pipelined connections: a statement is sent without waiting for those before it
 * (PostgreSQL's manual, section 54.2.4). Handing out connections from a pool would make up a third of the cost of a
 * small read.
 *
 * A connection that is slow to respond, because its statement waits for a lock or PostgreSQL is busy, gets no further
 * statements. They wait in the queue, and are dropped after QUERY_TIMEOUT_MS: what was never sent cannot happen late.
 */
export class Pipeline {
  readonly #connections: readonly PipelinedConnection[];
  readonly #queue: QueuedQuery[] = [];
  readonly #onStall: PipelineOptions['onStall'];
  #timer: NodeJS.Timeout | undefined;

  constructor({ size, client, sessionSettings, onStall, observe }: PipelineOptions) {
    const onResponse = (seconds: number, statement: string) => {
      observe?.(seconds, statement);
      this.#drain();
    };
    this.#connections = Array.from(
      { length: size },
      () => new PipelinedConnection({ client, sessionSettings, onResponse }),
    );
    this.#onStall = onStall;
  }

  /** The rows of one statement. May fail with a database error: see isDatabaseOutage. */
  query<Row extends pg.QueryResultRow>(statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS).unref();
    const free = this.#findFree();
    if (free !== undefined) return free.query<Row>(statement, values);
    return new Promise((resolve, reject) => {
      const run = (connection: PipelinedConnection) =>
        void connection.query<Row>(statement, values).then(resolve, reject);
      this.#queue.push({ run, reject, ticks: 0 });
    });
  }

  /** How many connections are open */
  get connections(): number {
    return this.#connections.filter(({ isOpen }) => isOpen).length;
  }

  /** How many queries wait behind another */
  get waiting(): number {
    return this.#connections.reduce((sum, { pending }) => sum + Math.max(0, pending - 1), this.#queue.length);
  }

  /** Discards the connections that have not responded to anything since a moment, by performance.now(). */
  discardSilentSince(since: number): void {
    for (const connection of this.#connections) {
      if (connection.lastResponseAt < since) connection.discard();
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()));
    clearInterval(this.#timer);
  }

  #findFree(): PipelinedConnection | undefined {
    let best: PipelinedConnection | undefined;
    for (const connection of this.#connections) {
      if (connection.isFree && (best === undefined || connection.pending < best.pending)) best = connection;
    }
    return best;
  }

  #drain(): void {
    while (this.#queue.length > 0) {
      const free = this.#findFree();
      if (free === undefined) return;
      this.#queue.shift()?.run(free);
    }
  }

  #tick(): void {
    let isIdle = true;
    for (const connection of this.#connections) {
      const silentTicks = connection.tick();
      if (silentTicks > 0) isIdle = false;
      if (silentTicks < TIMEOUT_TICKS) continue;
      const { isOpen, silentSince } = connection;
      connection.discard();
      if (isOpen) this.#onStall?.(silentSince);
    }
    for (const queued of this.#queue) queued.ticks += 1;
    while ((this.#queue[0]?.ticks ?? 0) >= TIMEOUT_TICKS) {
      this.#queue.shift()?.reject(new TimeoutError('No connection to the database was free in time'));
    }
    if (!isIdle || this.#queue.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
