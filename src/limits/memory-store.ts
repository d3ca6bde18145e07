import { LRUCache } from 'lru-cache';
import { RateLimiterCompatibleAbstract } from 'rate-limiter-flexible';
import type { ConsumeOptions, InsuranceLimiter, LimitStore } from './limit-store.js';
import { RateLimitResult } from './rate-limit-result.js';
import { hasRoom, type Window, type WindowCounter } from './windows.js';

interface Counter {
  count: number;
  /** By the clock that cannot be set */
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
  /** Milliseconds of a clock that cannot be set */
  readonly clock: () => number;
  /** Unix milliseconds */
  readonly now: () => number;
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
  readonly #now: () => number;

  constructor({ maxSubjects, clock, now }: MemoryStoreOptions) {
    super();
    this.#subjects = new LRUCache({ max: maxSubjects });
    this.#clock = clock;
    this.#now = now;
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
    const counters = this.peek(id, windows)?.counters ?? [];
    const isAllowed = hasRoom(windows, counters, cost);
    return new RateLimitResult(windows, counters, { isAllowed, cost, nowMs: this.#now() });
  }

  /** The same as `consume`, without a promise: returns the result whether the request is allowed or denied. */
  consumeNow(id: string, cost: number, { windows }: ConsumeOptions): RateLimitResult {
    const state = this.#getOrCreate(id);
    const clockMs = this.#clock();
    const known = readCounters(state, windows, clockMs);
    const isAllowed = hasRoom(windows, known, cost);
    const counters = isAllowed
      ? windows.map(({ name, lengthMs }) => increment(state[name], lengthMs, cost, clockMs))
      : known;
    return new RateLimitResult(windows, counters, { isAllowed, cost, nowMs: this.#now() });
  }

  /** Whether the counters of a subject leave room for `cost` requests. */
  hasRoom(id: string, windows: readonly Window[], cost: number): boolean {
    const state = this.#subjects.get(id);
    if (state === undefined) return true;
    const clockMs = this.#clock();
    return windows.every(({ name, limit }) => {
      const { count } = state[name];
      return (readMsLeft(state[name], clockMs) > 0 ? count : 0) + cost <= limit;
    });
  }

  /** The counters of a subject; undefined for an unknown one. */
  peek(id: string, windows: readonly Window[]): PeekedCounters | undefined {
    const state = this.#subjects.get(id);
    if (state === undefined) return undefined;
    const clockMs = this.#clock();
    return { counters: readCounters(state, windows, clockMs), ageMs: clockMs - state.replacedAtMs };
  }

  /** Sets the counters of a subject to those of a store that counts for several processes. */
  replace(id: string, windows: readonly Window[], counters: readonly WindowCounter[]): void {
    const state = this.#getOrCreate(id);
    const clockMs = this.#clock();
    for (const [index, { name }] of windows.entries()) {
      const counter = counters[index];
      if (counter) state[name] = { count: counter.count, endsAtMs: clockMs + counter.msLeft };
    }
    state.replacedAtMs = clockMs;
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

function readCounters(state: SubjectState, windows: readonly Window[], clockMs: number): WindowCounter[] {
  return windows.map(({ name }) => {
    const msLeft = readMsLeft(state[name], clockMs);
    return { count: msLeft > 0 ? state[name].count : 0, msLeft };
  });
}

/** Adds to a window, and starts it if none is running. */
function increment(counter: Counter, lengthMs: number, cost: number, clockMs: number): WindowCounter {
  if (readMsLeft(counter, clockMs) === 0) {
    counter.count = 0;
    counter.endsAtMs = clockMs + lengthMs;
  }
  counter.count += cost;
  return { count: counter.count, msLeft: counter.endsAtMs - clockMs };
}

function readMsLeft({ endsAtMs }: Counter, clockMs: number): number {
  return Math.max(0, endsAtMs - clockMs);
}
