import { repeat } from '../timing/repeat.js';
import { type Counts, DAY_MS, type UsageBatch, type UsageStore } from './store.js';

/**
 * All nodes append their counts in the first seconds of a period, not all at the same moment, and aggregate them right
 * afterwards. So a request waits for up to 28 s, and a key's usage is written about once in a period, by whichever node.
 */
const PERIOD_MS = 24_000;
const FLUSH_SPREAD_MS = 4_000;
const AGGREGATE_SPREAD_MS = 2_000;
/** However the clock is set, a process does not do either all the time. */
const MIN_WAIT_MS = 1_000;
/** The most counts of key, day and operation held at once, about 10 MB. Beyond that, new ones are dropped. */
const MAX_COUNTS = 100_000;
/** The most counts appended as one batch: smaller ones take more statements, and larger ones make aggregating slower. */
const BATCH_SIZE = 500;

export interface UsageOptions {
  readonly store: Pick<UsageStore, 'append' | 'aggregate'>;
  /** The names that are counted: clients can make up any others. */
  readonly operations: readonly string[];
  /** Unix milliseconds */
  readonly now: () => number;
  /** Called at each failure to append or to aggregate */
  readonly warn: (error: unknown) => void;
}

/**
 * Counts the calls of each key in memory, and flushes them to the database, where they are aggregated within 30 seconds:
 * a count waits here, and once more with those of other nodes.
 *
 * Counts that could not be appended are put back. A process that is killed loses what it counted since its last flush;
 * when the response to a COMMIT is lost, what it appended is counted twice. Usage is indicative; limits are counted
 * elsewhere, and exactly.
 */
export class UsageCounter {
  readonly #options: UsageOptions;
  /** Of each key, by `day operation` */
  readonly #counts = new Map<string, Map<string, Counts>>();
  #dropped = 0;
  #mostlyDenied = 0;

  constructor(options: UsageOptions) {
    this.#options = options;
  }

  /** How many counts of key, day and operation are not flushed yet */
  get waiting(): number {
    return [...this.#counts.values()].reduce((total, { size }) => total + size, 0);
  }

  /** How many requests were not counted, for want of room */
  get dropped(): number {
    return this.#dropped;
  }

  /** Of how many keys this process denied more than half of the requests between its last two flushes */
  get mostlyDenied(): number {
    return this.#mostlyDenied;
  }

  /** Counts one request of a key for each of the operations, whether it was admitted or denied. */
  count(apiKeyId: string, called: readonly string[], outcome: keyof Counts = 'requests'): void {
    const { now, operations } = this.#options;
    const day = Math.floor(now() / DAY_MS);
    for (const operation of called) {
      if (!operations.includes(operation)) continue;
      const counts = this.#find(day, operation, apiKeyId);
      if (counts === undefined) this.#dropped += 1;
      else counts[outcome] += 1;
    }
  }

  /** Appends the counts, to be aggregated later. Never rejects: keeps what is not appended. */
  async flush(): Promise<void> {
    this.#mostlyDenied = this.#countMostlyDenied();
    const batches = this.#takeBatches();
    try {
      for (; batches[0] !== undefined; batches.shift()) await this.#options.store.append(batches[0]);
    } catch (error) {
      for (const batch of batches) this.#putBack(batch);
      this.#options.warn(error);
    }
  }

  /** Aggregates what all nodes have appended. Never rejects: whoever is next aggregates what is left. */
  async aggregate(): Promise<void> {
    await this.#options.store.aggregate().catch(this.#options.warn);
  }

  /** Flushes and aggregates for the last time. Call it when no request is running and the database is still open. */
  async close(): Promise<void> {
    await this.flush();
    // An unavailable database gets a second chance, which takes a few seconds at most.
    if (this.waiting > 0) await this.flush();
    if (this.waiting === 0) await this.aggregate();
  }

  /** The counts to add to; undefined when there is no room for new ones. */
  #find(day: number, operation: string, apiKeyId: string): Counts | undefined {
    const name = `${day} ${operation}`;
    const ofKeys = this.#counts.get(name) ?? new Map<string, Counts>();
    const known = ofKeys.get(apiKeyId);
    if (known !== undefined) return known;
    if (this.waiting >= MAX_COUNTS) return undefined;
    const counts = { requests: 0, denied: 0 };
    this.#counts.set(name, ofKeys.set(apiKeyId, counts));
    return counts;
  }

  #putBack({ day, operation, counts }: UsageBatch): void {
    for (const [apiKeyId, { requests, denied }] of counts) {
      const waiting = this.#find(day, operation, apiKeyId);
      if (waiting === undefined) {
        this.#dropped += requests + denied;
        continue;
      }
      waiting.requests += requests;
      waiting.denied += denied;
    }
  }

  #countMostlyDenied(): number {
    const balances = new Map<string, number>();
    for (const ofKeys of this.#counts.values())
      for (const [id, { requests, denied }] of ofKeys)
        balances.set(id, (balances.get(id) ?? 0) + denied - requests);
    return [...balances.values()].filter((balance) => balance > 0).length;
  }

  /** What is to be appended, in the order of the keys: what several nodes know of neighbours is aggregated together. */
  #takeBatches(): UsageBatch[] {
    const batches: UsageBatch[] = [];
    for (const [name, ofKeys] of this.#counts) {
      const [day, operation = ''] = name.split(' ');
      const counts = [...ofKeys].sort(([a], [b]) => (a < b ? -1 : 1));
      while (counts.length > 0)
        batches.push({ day: Number(day), operation, counts: counts.splice(0, BATCH_SIZE) });
    }
    this.#counts.clear();
    return batches;
  }
}

/**
 * Flushes and aggregates in every period. Returns a function that ends that and waits for what is in progress.
 *
 * @param now Unix milliseconds: nodes keep to the same periods
 */
export function flushRegularly(usage: UsageCounter, now: () => number): () => Promise<void> {
  const place = Math.random();
  const flushesAt = place * FLUSH_SPREAD_MS;
  const aggregatesAt = FLUSH_SPREAD_MS + place * AGGREGATE_SPREAD_MS;
  const until = (time: number) => Math.max(MIN_WAIT_MS, Math.ceil(PERIOD_MS - ((now() - time) % PERIOD_MS)));
  let flushing: Promise<void> | undefined;
  const flush = () => (flushing = usage.flush());
  const aggregate = async () => {
    await flushing;
    await usage.aggregate();
  };
  const ends = [repeat(() => until(flushesAt), flush), repeat(() => until(aggregatesAt), aggregate)];
  return async () => void (await Promise.all(ends.map((end) => end())));
}
