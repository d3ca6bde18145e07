import { type KeyUsage, toDay, UnsettledError, type UsageStore } from './usage-store.js';

/** How often what was counted is added to the database, in milliseconds. */
const FLUSH_INTERVAL_MS = 3_000;
/** The most sums of key, day and operation remembered at once, some 25 MB; beyond it new ones are not counted. */
const SUMS_MAX = 100_000;
/** The most sums added at once: the statement has to end within the pool's time-out. */
const BATCH_SIZE = 2_000;

export interface UsageOptions {
  readonly store: Pick<UsageStore, 'add' | 'findOutcome'>;
  /** What is counted; other names are a client's invention */
  readonly operations: Iterable<string>;
  /** Unix milliseconds */
  readonly now: () => number;
  /** Told of the first failure of an outage */
  readonly warn: (error: unknown) => void;
  /** Default 3 s */
  readonly flushIntervalMs?: number;
}

const DAY_MS = 24 * 60 * 60 * 1000;

type Sum = KeyUsage & { requests: number };

/**
 * Counts in memory what each key calls, and adds it to the database every few seconds, each request once: when the end
 * of a transaction was not seen, the database is asked for it before anything else is added. What is lost is what a
 * process that is killed has counted since.
 */
export class UsageCounter {
  readonly #store: UsageOptions['store'];
  readonly #operations: ReadonlySet<string>;
  readonly #now: () => number;
  readonly #warn: UsageOptions['warn'];
  readonly #timer: NodeJS.Timeout;
  readonly #sums = new Map<string, Sum>();
  #unsettled: { transaction: string; rows: Sum[] } | undefined;
  #flushing: Promise<void> | undefined;
  #isWarned = false;
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
    for (const operation of operations) {
      if (this.#operations.has(operation)) this.#add({ apiKeyId, day, operation, requests: 1 });
    }
  }

  /** Adds what was counted so far to the database; what cannot be added is kept for the next time. Never rejects. */
  flush(): Promise<void> {
    this.#flushing ??= this.#flush().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  /** Adds the last of it and counts no further. Call it while the database is open and no request runs. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#flushing;
    await this.flush();
    // Once more, because there is no later time; a database that is away costs the end some seconds at most.
    if (this.#sums.size > 0 || this.#unsettled !== undefined) await this.flush();
  }

  async #flush(): Promise<void> {
    try {
      await this.#settle();
      for (let left = this.#sums.size; left > 0; left -= BATCH_SIZE) await this.#send();
      this.#isWarned = false;
    } catch (error) {
      if (!this.#isWarned) this.#warn(error);
      this.#isWarned = true;
    }
  }

  async #settle(): Promise<void> {
    if (this.#unsettled === undefined) return;
    const { transaction, rows } = this.#unsettled;
    const outcome = await this.#store.findOutcome(transaction);
    if (outcome === 'running') throw new Error('What adds usage to the database has not ended');
    this.#unsettled = undefined;
    if (outcome === 'lost') this.#restore(rows);
  }

  async #send(): Promise<void> {
    const batch = [...this.#sums].slice(0, BATCH_SIZE);
    for (const [name] of batch) this.#sums.delete(name);
    const rows = batch.map(([, sum]) => sum);
    try {
      await this.#store.add(rows);
    } catch (error) {
      if (error instanceof UnsettledError) this.#unsettled = { transaction: error.transaction, rows };
      else this.#restore(rows);
      throw error;
    }
  }

  #restore(rows: readonly Sum[]): void {
    for (const row of rows) this.#add(row);
  }

  /** Worded once a day. */
  #today(): string {
    const now = this.#now();
    if (now >= this.#day.endsAt || now < this.#day.endsAt - DAY_MS) {
      this.#day = { name: toDay(now), endsAt: (Math.floor(now / DAY_MS) + 1) * DAY_MS };
    }
    return this.#day.name;
  }

  #add(row: Sum): void {
    const name = `${row.apiKeyId} ${row.day} ${row.operation}`;
    const sum = this.#sums.get(name);
    if (sum !== undefined) sum.requests += row.requests;
    else if (this.#sums.size < SUMS_MAX) this.#sums.set(name, row);
  }
}
