/**
 * How long one request may wait for PostgreSQL and Redis. The sum of key lookup, one command to Redis and operation stays
 * under the 3 s within which the contract promises a 503.
 */

/** Opening a connection to PostgreSQL. */
export const CONNECT_TIMEOUT_MS = 1_000;
/**
 * One statement, enforced by PostgreSQL. A timeout of this process alone would abandon the connection and open another,
 * while the abandoned one went on waiting for its lock and counted towards `max_connections`.
 */
export const STATEMENT_TIMEOUT_MS = 1_200;
/** The response to a statement. PostgreSQL has ended it by then, so a connection without one is dead. */
export const QUERY_TIMEOUT_MS = 1_500;
/** The key lookup, however many statements it takes. */
export const KEY_LOOKUP_TIMEOUT_MS = 1_200;
/** The operation, however many statements it takes. */
export const OPERATION_TIMEOUT_MS = 1_500;
/** A readiness check, which is several queries. */
export const READINESS_TIMEOUT_MS = 2_000;
/** One command to Redis; measured in intervals of a timer, so it fires after 120 to 160 ms. */
export const REDIS_TIMEOUT_MS = 160;

/**
 * Opening a connection for a command or a migration, which nobody repeats as readily as a request. On a busy machine it
 * waits for the command's own modules, too.
 */
export const COMMAND_CONNECT_TIMEOUT_MS = 10_000;

/** Thrown when something did not settle in time. It may still happen later. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError';
}

interface Pending {
  /** Its place in the list */
  index: number;
  intervals: number;
  readonly reject: (reason: Error) => void;
}

/**
 * Times out any number of promises with one shared timer.
 *
 * It counts intervals of that timer instead of time. A pause of this process, such as a garbage collection, is one
 * interval however long it lasts, and so is not mistaken for a stall of the other side. And what has arrived by the end of
 * the last interval is read before it counts as missing.
 */
export class TimeoutTimer {
  readonly #intervalMs: number;
  readonly #maxIntervals: number;
  readonly #lateInterval: number;
  readonly #createError: () => Error;
  /**
   * In no order. A Set would be slower: V8 replaces its table after some deletions, and each table refers to the next.
   * Once one has become old, all after it, and the promises in them, outlive the collections of new objects.
   */
  readonly #pending: Pending[] = [];
  #timer: NodeJS.Timeout | undefined;
  /** By performance.now() */
  #countedAt = 0;

  /**
   * Promises time out after between `timeoutMs - intervalMs` and `timeoutMs` milliseconds.
   *
   * @param options.lateInterval what an interval counts that took twice as long, because this process was late. Default 1
   */
  constructor(options: {
    timeoutMs: number;
    intervalMs: number;
    lateInterval?: number;
    createError: () => Error;
  }) {
    this.#intervalMs = options.intervalMs;
    this.#maxIntervals = Math.round(options.timeoutMs / options.intervalMs);
    this.#lateInterval = options.lateInterval ?? 1;
    this.#createError = options.createError;
  }

  /** Settles like the promise, or rejects when it takes too long. */
  race<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const pending: Pending = { index: this.#pending.length, intervals: 0, reject };
      this.#pending.push(pending);
      if (this.#timer === undefined) {
        this.#countedAt = performance.now();
        this.#timer = setInterval(() => this.#countInterval(), this.#intervalMs).unref();
      }
      promise.then(
        (value) => {
          this.#remove(pending);
          resolve(value);
        },
        (error) => {
          this.#remove(pending);
          reject(error);
        },
      );
    });
  }

  /** Rejects everything that is pending. */
  rejectAll(reason: Error): void {
    for (const { reject } of this.#pending.splice(0)) reject(reason);
  }

  /** The last one takes its place. */
  #remove(pending: Pending): void {
    if (this.#pending[pending.index] !== pending) return;
    const last = this.#pending.pop() as Pending;
    if (last === pending) return;
    this.#pending[pending.index] = last;
    last.index = pending.index;
  }

  #countInterval(): void {
    if (this.#pending.length === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    const tookMs = performance.now() - this.#countedAt;
    this.#countedAt += tookMs;
    const intervals = tookMs < 2 * this.#intervalMs ? 1 : this.#lateInterval;
    for (const pending of this.#pending) pending.intervals += intervals;
    setImmediate(() => {
      for (const pending of this.#pending.filter((each) => each.intervals >= this.#maxIntervals)) {
        this.#remove(pending);
        pending.reject(this.#createError());
      }
    });
  }
}
