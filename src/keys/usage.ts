import { repeat } from '../batching/repeat.js';
import { DAY_MS, type Sum, toDay, type UsageStore } from './usage-store.js';

const FLUSH_INTERVAL_MS = 12_500;
/** A little less, so that sums are added up once in an interval, however many nodes there are. */
const ROLL_UP_AGE_SECONDS = 11;
/** The most sums of key, day and operation held at once, about 25 MB. Beyond that, new ones are not counted. */
const MAX_SUMS = 100_000;
/** The most sums stored as one batch. */
const BATCH_SIZE = 500;

export interface UsageOptions {
  readonly store: Pick<UsageStore, 'add' | 'rollUp'>;
  /** The names that are counted: clients can make up any others. */
  readonly operations: readonly string[];
  /** Unix milliseconds */
  readonly now: () => number;
  /** Called for the first failure of an outage */
  readonly warn: (error: unknown) => void;
}

/**
 * Counts the calls of each key in memory, and adds the sums to the database within 30 seconds: a sum waits here, and once
 * more with those of other nodes.
 *
 * Sums that could not be stored are put back. A process that is killed loses its counts since the last flush; when the
 * response to a COMMIT is lost, up to 30 s of counts are added twice. Usage is indicative; limits are counted elsewhere,
 * and exactly.
 */
export class UsageCounter {
  readonly #options: UsageOptions;
  readonly #sums = new Map<string, Sum>();
  #hasWarned = false;
  #dropped = 0;
  /** Formatted once a day, not for every request */
  #day = { name: '', startsAt: Number.POSITIVE_INFINITY };

  constructor(options: UsageOptions) {
    this.#options = options;
  }

  /** How many sums are not stored yet */
  get waiting(): number {
    return this.#sums.size;
  }

  /** How many requests were not counted, for want of room */
  get dropped(): number {
    return this.#dropped;
  }

  /** Counts one request of a key for each of the operations. */
  count(apiKeyId: string, called: readonly string[]): void {
    const { now, operations } = this.#options;
    const nowMs = now();
    if (nowMs < this.#day.startsAt || nowMs >= this.#day.startsAt + DAY_MS)
      this.#day = { name: toDay(nowMs), startsAt: Math.floor(nowMs / DAY_MS) * DAY_MS };
    const day = this.#day.name;
    for (const operation of called) {
      if (operations.includes(operation)) this.#add({ apiKeyId, day, operation, requests: 1 });
    }
  }

  /** Stores the sums, and adds up all nodes' if the oldest is that old. Never rejects: it keeps what is not stored. */
  async flush(rollUpAgeSeconds = ROLL_UP_AGE_SECONDS): Promise<void> {
    const rows = [...this.#sums.values()].sort((a, b) => (a.apiKeyId < b.apiKeyId ? -1 : 1));
    this.#sums.clear();
    try {
      while (rows.length > 0) {
        await this.#options.store.add(rows.slice(0, BATCH_SIZE));
        rows.splice(0, BATCH_SIZE);
      }
      await this.#options.store.rollUp(rollUpAgeSeconds);
      this.#hasWarned = false;
    } catch (error) {
      for (const row of rows) this.#add(row);
      if (!this.#hasWarned) this.#options.warn(error);
      this.#hasWarned = true;
    }
  }

  /** Flushes for the last time. Call it when no request is running and the database is still open. */
  async close(): Promise<void> {
    await this.flush(0);
    // An unavailable database gets a second chance, which takes a few seconds at most.
    if (this.#sums.size > 0) await this.flush(0);
  }

  #add(row: Sum): void {
    const name = `${row.apiKeyId} ${row.day} ${row.operation}`;
    const sum = this.#sums.get(name);
    if (sum !== undefined) sum.requests += row.requests;
    else if (this.#sums.size < MAX_SUMS) this.#sums.set(name, row);
    else this.#dropped += row.requests;
  }
}

/** Flushes at intervals, which differ by up to a tenth: not all processes at the same moment. Returns what repeat does. */
export function flushRegularly(usage: UsageCounter): () => Promise<void> {
  return repeat(FLUSH_INTERVAL_MS * (0.9 + Math.random() / 5), () => usage.flush());
}
