import { KEY_LOOKUP_TIMEOUT_MS, TimeoutError } from '../batching/timeouts.js';
import type { ApiKey, KeyStore } from './store.js';

/** The most keys that one statement looks up: few enough to be answered within one tick. */
const MAX_BATCH_SIZE = 50;

/**
 * `known`: the key was valid a moment ago. `new`: it has not been seen. `last`: neither, and its address is over its
 * limit.
 */
export type LookupPriority = 'known' | 'new' | 'last';

interface Lookup {
  readonly hash: Uint8Array;
  /** By performance.now() */
  readonly startedAt: number;
  readonly resolve: (apiKey: ApiKey | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Looks up keys by hash, many at a time: those of one event-loop tick share a statement, and those that arrive while it
 * is running share the next. Anybody can make up keys that have to be looked up, so lookups of known keys have a
 * statement of their own, and those from addresses over their limit wait for the others.
 */
export class KeyLookups {
  readonly #store: Pick<KeyStore, 'findByHashes'>;
  readonly #known: LookupQueue;
  readonly #unknown: LookupQueue;

  constructor(store: Pick<KeyStore, 'findByHashes'>) {
    this.#store = store;
    this.#known = new LookupQueue((batch) => this.#run(batch));
    this.#unknown = new LookupQueue((batch) => this.#run(batch));
  }

  /** The key with this hash. May fail with a database error. */
  find(hash: Uint8Array, priority: LookupPriority): Promise<ApiKey | undefined> {
    const queue = priority === 'known' ? this.#known : this.#unknown;
    return new Promise((resolve, reject) => {
      queue.add({ hash, startedAt: performance.now(), resolve, reject }, priority === 'last');
    });
  }

  async #run(batch: readonly Lookup[]): Promise<void> {
    try {
      const found = await this.#store.findByHashes(batch.map(({ hash }) => hash));
      for (const [index, { resolve }] of batch.entries()) resolve(found[index]);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}

/** Runs one batch at a time, with the lookups of `#first` before those of `#last`. */
class LookupQueue {
  readonly #run: (batch: readonly Lookup[]) => Promise<void>;
  #first: Lookup[] = [];
  #last: Lookup[] = [];
  #isBusy = false;

  constructor(run: (batch: readonly Lookup[]) => Promise<void>) {
    this.#run = run;
  }

  add(lookup: Lookup, isLast: boolean): void {
    (isLast ? this.#last : this.#first).push(lookup);
    if (this.#isBusy) return;
    this.#isBusy = true;
    setImmediate(() => void this.#runAll());
  }

  async #runAll(): Promise<void> {
    while (this.#first.length + this.#last.length > 0) {
      const batch = this.#first.splice(0, MAX_BATCH_SIZE);
      batch.push(...this.#last.splice(0, MAX_BATCH_SIZE - batch.length));
      const startedAfter = performance.now() - KEY_LOOKUP_TIMEOUT_MS;
      const isWanted = (lookup: Lookup) => lookup.startedAt > startedAfter;
      for (const { reject } of batch.filter((lookup) => !isWanted(lookup))) {
        reject(new TimeoutError('The key was not looked up in time'));
      }
      const wanted = batch.filter(isWanted);
      if (wanted.length > 0) await this.#run(wanted);
    }
    this.#isBusy = false;
  }
}
