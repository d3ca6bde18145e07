import type { RateLimiterCompatibleAbstract } from 'rate-limiter-flexible';
import type { RateLimitResult } from './rate-limit-result.js';
import type { Window, WindowCounter } from './windows.js';

export interface ConsumeOptions {
  /** The windows that apply, with the current limits; the store holds counters only. */
  readonly windows: readonly Window[];
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
  createStore(options: StoreOptions): LimitStore;
  /** @throws OperatorError when the backend is still unavailable after `withinMs` */
  ready(withinMs: number): Promise<void>;
  close(): void;
}

/** The memory of this node, which holds what the store last answered, and decides when the store fails. */
export interface InsuranceLimiter extends RateLimiterCompatibleAbstract {
  /** The counters of a subject, without those of windows that have ended; undefined for an unknown subject. */
  peek(id: string, windows: readonly Window[]): { readonly counters: readonly WindowCounter[] } | undefined;
  /** To be called with the counters of every answer */
  replace(id: string, windows: readonly Window[], counters: readonly WindowCounter[]): void;
}

export interface StoreOptions {
  /** What kind of subject the ids are of */
  readonly kind: 'key' | 'address';
  /** rate-limiter-flexible's name for what decides when the store fails */
  readonly insuranceLimiter: InsuranceLimiter;
  /** Unix milliseconds */
  readonly now: () => number;
}
