import type { RateLimitResult } from './rate-limit-result.js';
import type { Window, WindowCounter } from './windows.js';

export interface ConsumeOptions {
  /** The windows that apply, with their current limits; the store itself holds only counters. */
  readonly windows: readonly Window[];
  /**
   * Counters of this subject from another store, in the order of `windows`. The store continues from the higher of the
   * two. This is how counts survive a change of store, when Redis fails and when it recovers.
   */
  readonly known?: readonly WindowCounter[] | undefined;
}

/** Where requests are counted. A subject is a caller with limits; each store gets the ids of one kind of subject. */
export interface LimitStore {
  /**
   * Counts `cost` requests in every window, or in none. Resolves when they are allowed. Like all of
   * rate-limiter-flexible, rejects with the result when they are denied, and with any other error when the store fails.
   */
  consume(id: string, cost: number, options: ConsumeOptions): Promise<RateLimitResult>;
  /** Resolves with the result that `consume` would have, and counts nothing. Rejects when the store fails. */
  read(id: string, cost: number, options: ConsumeOptions): Promise<RateLimitResult>;
}
