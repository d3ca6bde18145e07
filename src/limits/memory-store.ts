import { LRUCache } from 'lru-cache';
import { RateLimiterCompatibleAbstract } from 'rate-limiter-flexible';
import type { ConsumeOptions, InsuranceLimiter, LimitStore } from './limit-store.js';
import { RateLimitResult } from './rate-limit-result.js';
import { hasRoom, type Window, type WindowCounter } from './windows.js';

interface Counter {
  count: number;
  endsAtMs: number;
}

/** The counters of one subject. */
interface SubjectState {
  minute: Counter;
  day: Counter;
  /** See `replace` */
  replacedAtMs: number;
}

/** What `peek` finds. */
export interface PeekedCounters {
  readonly counters: readonly WindowCounter[];
  /** How long ago they were last replaced */
  readonly ageMs: number;
}

export interface MemoryStoreOptions {
  /** The most subjects remembered. Beyond that, the least recently seen is forgotten, with its counts. */
  readonly maxSubjects: number;
  /** Unix milliseconds */
  readonly clock: () => number;
}

/**
 * Counts in the memory of this process. It serves as the insurance of rate-limiter-flexible's Redis limiter, so it
 * derives from the class that the library exports for custom limiters. The library's memory limiter has one window per
 * instance, counts what it denies, is unbounded, sets a timer for every key, and has no clock that a test could move.
 *
 * There are no timers: windows that have ended are overwritten, or evicted with their subject.
 */
export class MemoryStore extends RateLimiterCompatibleAbstract implements LimitStore, InsuranceLimiter {
  // The library sets these two on every insurance limiter.
  override blockDuration = 0;
  override execEvenly = false;
  readonly #subjects: LRUCache<string, SubjectState>;
  readonly #clock: () => number;

  constructor({ maxSubjects, clock }: MemoryStoreOptions) {
    super();
    this.#subjects = new LRUCache({ max: maxSubjects });
    this.#clock = clock;
  }

  override async consume(id: string, cost: number, options: ConsumeOptions): Promise<RateLimitResult> {
    const result = this.consumeNow(id, cost, options);
    if (!result.isAllowed) throw result;
    return result;
  }

  async read(id: string, cost: number, options: ConsumeOptions): Promise<RateLimitResult> {
    return this.readNow(id, cost, options);
  }

  /** The same as `read`, without a promise. */
  readNow(id: string, cost: number, { windows }: ConsumeOptions): RateLimitResult {
    const nowMs = this.#clock();
    const counters = this.peek(id, windows)?.counters ?? [];
    return new RateLimitResult(windows, counters, {
      isAllowed: hasRoom(windows, counters, cost),
      cost,
      nowMs,
    });
  }

  /** The same as `consume`, without a promise: returns the result whether the request is allowed or denied. */
  consumeNow(id: string, cost: number, { windows }: ConsumeOptions): RateLimitResult {
    const state = this.#getOrCreate(id);
    const nowMs = this.#clock();
    const counters = readCounters(state, windows, nowMs);
    const isAllowed = hasRoom(windows, counters, cost);
    if (!isAllowed) return new RateLimitResult(windows, counters, { isAllowed, cost, nowMs });
    const counted = windows.map(({ name, lengthMs }) => increment(state[name], lengthMs, cost, nowMs));
    return new RateLimitResult(windows, counted, { isAllowed, cost, nowMs });
  }

  /** Whether the counters of a subject leave room for `cost` requests. */
  hasRoom(id: string, windows: readonly Window[], cost: number): boolean {
    const state = this.#subjects.get(id);
    if (state === undefined) return true;
    const nowMs = this.#clock();
    return windows.every(({ name, lengthMs, limit }) => {
      const { count } = state[name];
      return (readMsLeft(state[name], lengthMs, nowMs) > 0 ? count : 0) + cost <= limit;
    });
  }

  /** The counters of a subject; undefined for an unknown one. */
  peek(id: string, windows: readonly Window[]): PeekedCounters | undefined {
    const state = this.#subjects.get(id);
    if (state === undefined) return undefined;
    const nowMs = this.#clock();
    const ageMs = Math.abs(nowMs - state.replacedAtMs);
    return { counters: readCounters(state, windows, nowMs), ageMs };
  }

  /** Sets the counters of a subject to those of a store that counts for several processes. */
  replace(id: string, windows: readonly Window[], counters: readonly WindowCounter[]): void {
    const state = this.#getOrCreate(id);
    const nowMs = this.#clock();
    for (const [index, { name }] of windows.entries()) {
      const counter = counters[index];
      if (counter) state[name] = { count: counter.count, endsAtMs: nowMs + counter.msLeft };
    }
    state.replacedAtMs = nowMs;
  }

  #getOrCreate(id: string): SubjectState {
    const known = this.#subjects.get(id);
    if (known) return known;
    const state = {
      minute: { count: 0, endsAtMs: 0 },
      day: { count: 0, endsAtMs: 0 },
      replacedAtMs: Number.NEGATIVE_INFINITY,
    };
    this.#subjects.set(id, state);
    return state;
  }
}

function readCounters(state: SubjectState, windows: readonly Window[], nowMs: number): WindowCounter[] {
  return windows.map(({ name, lengthMs }) => {
    const msLeft = readMsLeft(state[name], lengthMs, nowMs);
    return { count: msLeft > 0 ? state[name].count : 0, msLeft };
  });
}

/** Adds to a window, and starts it if none is running. */
function increment(counter: Counter, lengthMs: number, cost: number, nowMs: number): WindowCounter {
  if (readMsLeft(counter, lengthMs, nowMs) === 0) {
    counter.count = 0;
    counter.endsAtMs = nowMs + lengthMs;
  }
  counter.count += cost;
  return { count: counter.count, msLeft: counter.endsAtMs - nowMs };
}

/** A window with more time left than its length has ended too: a clock that was set back must not prolong it. */
function readMsLeft(counter: Counter, lengthMs: number, nowMs: number): number {
  const msLeft = counter.endsAtMs - nowMs;
  return msLeft > 0 && msLeft <= lengthMs ? msLeft : 0;
}
