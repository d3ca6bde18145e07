import { repeat } from '../timing/repeat.js';
import { type Counts, DAY_MS, type NewUsage, toDay, type UsageStore } from './store.js';

/** How long after a flush the next one begins. */
export const FLUSH_INTERVAL_MS = 24_000;
/** The most counts of key, day and operation held at once, about 10 MB. Beyond that, new ones are dropped. */
const MAX_COUNTS = 100_000;
/** The most counts that one statement adds: few enough to delay other nodes by milliseconds only. */
const MAX_ROWS_PER_STATEMENT = 1_000;

/** The operation of a denied request whose headers do not name one; its body was not read. */
export const UNNAMED_CALL = 'mcp';

export interface UsageOptions {
  readonly store: Pick<UsageStore, 'add'>;
  /** The names that are counted, because clients can make up others. */
  readonly operations: readonly string[];
  /** Unix milliseconds */
  readonly now: () => number;
  /** Called when some counts could not be stored */
  readonly warn: (error: unknown) => void;
}

/**
 * Counts the calls of each key in memory, and adds them to the stored counts within half a minute.
 *
 * Counts that could not be stored are put back. So a count is added twice if the response to its COMMIT is lost, and a killed
 * process loses what it has counted since its last flush. Usage is indicative; limits are counted elsewhere, and exactly.
 */
export class UsageCounter {
  readonly #options: UsageOptions;
  /** The counts of each key by `day operation`, with the day since 1970-01-01 */
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

  /** How many requests were not counted because there was no room */
  get dropped(): number {
    return this.#dropped;
  }

  /** For how many keys this process denied more than half of the requests between its last two flushes */
  get mostlyDenied(): number {
    return this.#mostlyDenied;
  }

  /** Counts one request of a key for each of the operations, whether it was admitted or denied. */
  count(apiKeyId: string, called: readonly string[], outcome: keyof Counts = 'requests'): void {
    const { now, operations } = this.#options;
    const day = Math.floor(now() / DAY_MS);
    for (const operation of called) {
      if (!operations.includes(operation)) continue;
      const counts = this.#find(`${day} ${operation}`, apiKeyId);
      if (counts === undefined) this.#dropped += 1;
      else counts[outcome] += 1;
    }
  }

  /** Adds the counts to what is stored. Never rejects: keeps what could not be stored. */
  async flush(): Promise<void> {
    this.#mostlyDenied = this.#countMostlyDenied();
    const rows = this.#take();
    try {
      while (rows.length > 0) {
        await this.#options.store.add(rows.slice(0, MAX_ROWS_PER_STATEMENT));
        rows.splice(0, MAX_ROWS_PER_STATEMENT);
      }
    } catch (error) {
      for (const row of rows) this.#putBack(row);
      this.#options.warn(error);
    }
  }

  /** Flushes for the last time. Call it when no request is running and the database is still open. */
  async close(): Promise<void> {
    await this.flush();
    // One more attempt for an unavailable database, which takes a few seconds at most.
    if (this.waiting > 0) await this.flush();
  }

  /** The counts to add to; undefined when there is no room for new ones. */
  #find(name: string, apiKeyId: string): Counts | undefined {
    const ofKeys = this.#counts.get(name) ?? new Map<string, Counts>();
    const known = ofKeys.get(apiKeyId);
    if (known !== undefined) return known;
    if (this.waiting >= MAX_COUNTS) return undefined;
    const counts = { requests: 0, denied: 0 };
    this.#counts.set(name, ofKeys.set(apiKeyId, counts));
    return counts;
  }

  #putBack({ apiKeyId, day, operation, requests, denied }: NewUsage): void {
    const waiting = this.#find(`${Date.parse(day) / DAY_MS} ${operation}`, apiKeyId);
    if (waiting === undefined) {
      this.#dropped += requests + denied;
      return;
    }
    waiting.requests += requests;
    waiting.denied += denied;
  }

  #countMostlyDenied(): number {
    const balances = new Map<string, number>();
    for (const ofKeys of this.#counts.values())
      for (const [id, { requests, denied }] of ofKeys)
        balances.set(id, (balances.get(id) ?? 0) + denied - requests);
    return [...balances.values()].filter((balance) => balance > 0).length;
  }

  /**
   * Sorted by key, so that nodes that flush at once wait for each other in the same order, and a statement's rows are close
   * together.
   */
  #take(): NewUsage[] {
    const rows = [...this.#counts].flatMap(([name, ofKeys]) => {
      const [days, operation = ''] = name.split(' ');
      const day = toDay(Number(days) * DAY_MS);
      return Array.from(ofKeys, ([apiKeyId, counts]) => ({ apiKeyId, day, operation, ...counts }));
    });
    this.#counts.clear();
    return rows.sort((one, other) => (one.apiKeyId < other.apiKeyId ? -1 : 1));
  }
}

/**
 * Flushes at intervals. The first interval is shortened at random, so that nodes that start together do not make each
 * other wait. Returns a function that stops it and waits for the flush in progress.
 */
export function flushRegularly(usage: UsageCounter): () => Promise<void> {
  let nextMs = Math.random() * FLUSH_INTERVAL_MS;
  const untilNextMs = () => {
    const untilMs = nextMs;
    nextMs = FLUSH_INTERVAL_MS;
    return untilMs;
  };
  return repeat(untilNextMs, () => usage.flush());
}
