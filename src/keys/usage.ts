import { DAY_MS, type KeyUsage, toDay, type UsageStore } from './usage-store.js';

const FLUSH_INTERVAL_MS = 3_000;
/** The most sums of key, day and operation held at once, about 25 MB. Beyond that, new ones are not counted. */
const MAX_SUMS = 100_000;
/** The most sums added by one statement, so that it stays well within its timeout. */
const BATCH_SIZE = 2_000;

export interface UsageOptions {
  readonly store: Pick<UsageStore, 'add'>;
  /** The names that are counted: clients can make up any others. */
  readonly operations: Iterable<string>;
  /** Unix milliseconds */
  readonly now: () => number;
  /** Called for the first failure of an outage */
  readonly warn: (error: unknown) => void;
  /** Default 3 s */
  readonly flushIntervalMs?: number;
}

type Sum = KeyUsage & { requests: number };

/**
 * Counts the calls of each key in memory, and adds the sums to the database every few seconds.
 *
 * Sums that could not be added are put back. A process that is killed loses its counts since the last flush; when the
 * response to a COMMIT is lost, up to 3 s of counts are added twice. Usage is indicative; limits are counted elsewhere,
 * and exactly.
 */
export class UsageCounter {
  readonly #store: UsageOptions['store'];
  readonly #operations: ReadonlySet<string>;
  readonly #now: () => number;
  readonly #warn: UsageOptions['warn'];
  readonly #timer: NodeJS.Timeout;
  readonly #sums = new Map<string, Sum>();
  #flushing: Promise<void> | undefined;
  #hasWarned = false;
  #day = { name: '', endsAt: 0 };

  constructor({ store, operations, now, warn, flushIntervalMs = FLUSH_INTERVAL_MS }: UsageOptions) {
    this.#store = store;
    this.#operations = new Set(operations);
    this.#now = now;
    this.#warn = warn;
    this.#timer = setInterval(() => void this.flush(), flushIntervalMs).unref();
  }

  /** Counts one request of a key for each of the operations. */
  count(apiKeyId: string, operations: readonly string[]): void {
    const day = this.#today();
    let sum: Sum | undefined;
    for (const operation of operations) {
      if (operation === sum?.operation) sum.requests += 1;
      else if (this.#operations.has(operation)) sum = this.#add({ apiKeyId, day, operation, requests: 1 });
    }
  }

  /** Adds the sums to the database. Never rejects: sums that cannot be added are kept for the next flush. */
  flush(): Promise<void> {
    this.#flushing ??= this.#flush().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  /** Flushes for the last time. Call it when no request is running and the database is still open. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#flushing;
    await this.flush();
    // This is the last flush, so an unavailable database gets a second chance, which takes a few seconds at most.
    if (this.#sums.size > 0) await this.flush();
  }

  async #flush(): Promise<void> {
    try {
      for (let left = this.#sums.size; left > 0; left -= BATCH_SIZE) await this.#flushBatch();
      this.#hasWarned = false;
    } catch (error) {
      if (!this.#hasWarned) this.#warn(error);
      this.#hasWarned = true;
    }
  }

  async #flushBatch(): Promise<void> {
    const batch = [...this.#sums].slice(0, BATCH_SIZE);
    for (const [name] of batch) this.#sums.delete(name);
    const rows = batch.map(([, sum]) => sum);
    try {
      await this.#store.add(rows);
    } catch (error) {
      for (const row of rows) this.#add(row);
      throw error;
    }
  }

  /** Formatted once a day. */
  #today(): string {
    const now = this.#now();
    if (now >= this.#day.endsAt || now < this.#day.endsAt - DAY_MS) {
      this.#day = { name: toDay(now), endsAt: (Math.floor(now / DAY_MS) + 1) * DAY_MS };
    }
    return this.#day.name;
  }

  /** Returns the sum that the row is part of now. */
  #add(row: Sum): Sum {
    const name = `${row.apiKeyId} ${row.day} ${row.operation}`;
    const sum = this.#sums.get(name);
    if (sum === undefined) {
      if (this.#sums.size < MAX_SUMS) this.#sums.set(name, row);
      return row;
    }
    sum.requests += row.requests;
    return sum;
  }
}
