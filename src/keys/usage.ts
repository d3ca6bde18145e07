import { repeat } from '../batching/repeat.js';
import { DAY_MS, type UsageBatch, type UsageStore } from './usage-store.js';

/** Sums are stored in every second one and added up in the next, so within three, which take less than 30 s. */
const INTERVAL_MS = 8_800;
/** A little less, so that sums are added up once in an interval, however many nodes there are. */
const ROLL_UP_AGE_SECONDS = 7.5;
/** The most sums of key, day and operation held at once, about 10 MB. Beyond that, new ones are not counted. */
const MAX_SUMS = 100_000;
/** The most sums stored as one batch: the fewer batches, the less PostgreSQL has to write besides. */
const BATCH_SIZE = 2_000;

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
  /** Of each key, by `day operation` */
  readonly #sums = new Map<string, Map<string, number>>();
  #hasWarned = false;
  #dropped = 0;

  constructor(options: UsageOptions) {
    this.#options = options;
  }

  /** How many sums are not stored yet */
  get waiting(): number {
    return [...this.#sums.values()].reduce((total, { size }) => total + size, 0);
  }

  /** How many requests were not counted, for want of room */
  get dropped(): number {
    return this.#dropped;
  }

  /** Counts one request of a key for each of the operations. */
  count(apiKeyId: string, called: readonly string[]): void {
    const { now, operations } = this.#options;
    const day = Math.floor(now() / DAY_MS);
    for (const operation of called) {
      if (operations.includes(operation)) this.#add(day, operation, apiKeyId, 1);
    }
  }

  /** Stores the sums if told to, and adds up all nodes' if the oldest is that old. Never rejects: keeps what is not stored. */
  async flush(rollUpAgeSeconds = ROLL_UP_AGE_SECONDS, stores = true): Promise<void> {
    const batches = stores ? this.#takeBatches() : [];
    try {
      for (; batches[0] !== undefined; batches.shift()) await this.#options.store.add(batches[0]);
      await this.#options.store.rollUp(rollUpAgeSeconds);
      this.#hasWarned = false;
    } catch (error) {
      for (const { day, operation, sums } of batches)
        for (const [apiKeyId, requests] of sums) this.#add(day, operation, apiKeyId, requests);
      if (!this.#hasWarned) this.#options.warn(error);
      this.#hasWarned = true;
    }
  }

  /** Flushes for the last time. Call it when no request is running and the database is still open. */
  async close(): Promise<void> {
    await this.flush(0);
    // An unavailable database gets a second chance, which takes a few seconds at most.
    if (this.waiting > 0) await this.flush(0);
  }

  #add(day: number, operation: string, apiKeyId: string, requests: number): void {
    const name = `${day} ${operation}`;
    const sums = this.#sums.get(name) ?? new Map<string, number>();
    this.#sums.set(name, sums);
    const known = sums.get(apiKeyId);
    if (known !== undefined || this.waiting < MAX_SUMS) sums.set(apiKeyId, (known ?? 0) + requests);
    else this.#dropped += requests;
  }

  /** What is to be stored, in the order of the keys: what several nodes have stored of neighbours is added up together. */
  #takeBatches(): UsageBatch[] {
    const batches: UsageBatch[] = [];
    for (const [name, counts] of this.#sums) {
      const [day, operation = ''] = name.split(' ');
      const sums = [...counts].sort(([a], [b]) => (a < b ? -1 : 1));
      while (sums.length > 0) batches.push({ day: Number(day), operation, sums: sums.splice(0, BATCH_SIZE) });
    }
    this.#sums.clear();
    return batches;
  }
}

/** Flushes at intervals, which differ by up to a tenth: not all processes at the same moment. Returns what repeat does. */
export function flushRegularly(usage: UsageCounter): () => Promise<void> {
  let runs = 0;
  return repeat(INTERVAL_MS * (0.9 + Math.random() / 5), () =>
    usage.flush(ROLL_UP_AGE_SECONDS, runs++ % 2 === 0),
  );
}
