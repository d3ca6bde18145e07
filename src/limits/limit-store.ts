import type { RateLimiterCompatibleAbstract } from 'rate-limiter-flexible';
import type { RateLimitResult } from './rate-limit-result.js';
import type { Window, WindowCounter } from './windows.js';

export interface ConsumeOptions {
  /** The windows that apply, with the current limits; the store holds counters only. */
  readonly windows: readonly Window[];
  /**
   * Counters of this subject carried over from another store, in the order of `windows`. The store continues from the
   * higher of the two. This is how counts survive a change of store, such as an outage of Redis and the return from it.
   */
  readonly carriedOver?: readonly WindowCounter[] | undefined;
}

/** Where requests are counted. Each store gets the ids of one kind of subject. */
export interface LimitStore {
  /**
   * Counts `cost` requests in every window, or in none. Resolves when they are allowed. Like all of
   * rate-limiter-flexible, rejects with the result when they are denied, and with any other error when the store fails.
   */
  consume(id: string, cost: number, options: ConsumeOptions): Promise<RateLimitResult>;
  /** Resolves with what `consume` would have, allowed or denied, and counts nothing. Rejects when the store fails. */
  read(id: string, cost: number, options: ConsumeOptions): Promise<RateLimitResult>;
}

/** A server that counts for several processes. Creating one is all that a further kind of store needs. */
export interface LimitBackend {
  /** Names it in readiness, metrics and logs: `redis` */
  readonly name: string;
  /** Whether it decides now. If not, memory does. */
  readonly isAvailable: boolean;
  /** Changes each time the backend becomes available: counters that it held before may be lost. */
  readonly epoch: number;
  createStore(options: StoreOptions): LimitStore;
  /** @throws OperatorError when the backend is still unavailable after `withinMs` */
  ready(withinMs: number): Promise<void>;
  close(): void;
}

export interface StoreOptions {
  /** What kind of subject the ids are of */
  readonly kind: 'key' | 'address';
  /** Decides when the store fails: rate-limiter-flexible's name for a fallback. */
  readonly insuranceLimiter: RateLimiterCompatibleAbstract;
  /** To be called with the counters of every answer, and the epoch in which the question was sent */
  readonly onCounters: (
    id: string,
    windows: readonly Window[],
    counters: readonly WindowCounter[],
    epoch: number,
  ) => void;
  /** Unix milliseconds */
  readonly clock: () => number;
}
