import type { RateLimitResult } from './rate-limit-result.js';
import type { Window, WindowCounter } from './windows.js';

export interface ConsumeOptions {
  /** The windows that apply, with the limits of the moment; the store holds counters only. */
  readonly windows: readonly Window[];
  /**
   * Counters of this subject as another store held them, in the order of `windows`. The store continues from the higher
   * of the two. This is how counts survive a change of store, such as an outage of Redis and the return from it.
   */
  readonly known?: readonly WindowCounter[] | undefined;
}

/** Where requests are counted. A subject is whoever is limited; each store is given the ids of one kind of subject. */
export interface LimitStore {
  /**
   * Counts `cost` requests in every window, or in none. Resolves when they are allowed. Like all of
   * rate-limiter-flexible, rejects with the result when they are denied, and with any other error when the store fails.
   */
  consume(id: string, cost: number, options: ConsumeOptions): Promise<RateLimitResult>;
  /** Resolves with what `consume` would have, allowed or denied, and counts nothing. Rejects when the store fails. */
  read(id: string, cost: number, options: ConsumeOptions): Promise<RateLimitResult>;
}
