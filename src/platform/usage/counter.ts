import { repeat } from '../timing/repeat.js';
import { DAY_MS, type UsageBatch, type UsageStore } from './store.js';

/**
 * All nodes store their sums in the first seconds of a period, not all at the same moment, and add them up right
 * afterwards. So a request waits for up to 28 s, and a key's usage is written about once in a period, by whichever node.
 */
const PERIOD_MS = 24_000;
const SPREAD_MS = 4_000;
/** The most sums of key, day and operation held at once, about 10 MB. Beyond that, new ones are not counted. */
const MAX_SUMS = 100_000;
/** The most sums stored as one batch: smaller ones take more statements, and larger ones make adding up slower. */
const BATCH_SIZE = 500;

export interface UsageOptions {
  readonly store: Pick<UsageStore, 'add' | 'addUp'>;
  /** The names that are counted: clients can make up any others. */
  readonly operations: readonly string[];
  /** Unix milliseconds */
  readonly now: () => number;
  /** Called at each failure to store or to add up */
  readonly warn: (error: unknown) => void;
}

/**
 * Counts the calls of each key in memory, and adds the sums to the database within 30 seconds: a sum waits here, and once
 * more with those of other nodes.
 *
 * Sums that could not be stored are put back. A process that is killed loses what it counted since it last stored; when the
 * response to a COMMIT is lost, what it stored is added twice. Usage is indicative; limits are counted elsewhere,
 * and exactly.
 */
export class UsageCounter {
  readonly #options: UsageOptions;
  /** Of each key, by `day operation` */
  readonly #sums = new Map<string, Map<string, number>>();
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

  /** Stores the sums, to be added up later. Never rejects: keeps what is not stored. */
  async store(): Promise<void> {
    const batches = this.#takeBatches();
    try {
      for (; batches[0] !== undefined; batches.shift()) await this.#options.store.add(batches[0]);
    } catch (error) {
      for (const { day, operation, sums } of batches)
        for (const [apiKeyId, requests] of sums) this.#add(day, operation, apiKeyId, requests);
      this.#options.warn(error);
    }
  }

  /** Adds up what all nodes have stored. Never rejects: whoever is next adds up what is left. */
  async addUp(): Promise<void> {
    await this.#options.store.addUp().catch(this.#options.warn);
  }

  /** Stores and adds up for the last time. Call it when no request is running and the database is still open. */
  async close(): Promise<void> {
    await this.store();
    // An unavailable database gets a second chance, which takes a few seconds at most.
    if (this.waiting > 0) await this.store();
    if (this.waiting === 0) await this.addUp();
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

/** Stores and adds up in every period. Returns a function that ends that and waits for what is in progress. */
export function storeRegularly(usage: UsageCounter): () => Promise<void> {
  const storesAt = Math.random() * SPREAD_MS;
  const addsUpAt = SPREAD_MS + storesAt / 2;
  const until = (time: number) => Math.ceil(PERIOD_MS - ((Date.now() - time) % PERIOD_MS));
  let storing: Promise<void> | undefined;
  const store = () => (storing = usage.store());
  const addUp = async () => {
    await storing;
    await usage.addUp();
  };
  const ends = [repeat(() => until(storesAt), store), repeat(() => until(addsUpAt), addUp)];
  return async () => void (await Promise.all(ends.map((end) => end())));
}
