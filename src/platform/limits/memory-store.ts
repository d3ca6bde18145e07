import { LRUCache } from 'lru-cache';
import { RateLimiterCompatibleAbstract } from 'rate-limiter-flexible';
import type { WindowName } from '#store/plans.js';
import {
  type ConsumeOptions,
  hasRoom,
  RateLimitResult,
  type Window,
  type WindowCounter,
} from './rate-limit-result.js';

interface Counter {
  readonly count: number;
  /** By the clock that cannot be set */
  readonly endsAtMs: number;
}

/** In which denials are counted: it starts with the first of them. */
const DENIED_WINDOW_MS = 60_000;

/** Requests of one subject that were denied within a minute, by all nodes as far as this one knows. */
interface Denied {
  count: number;
  /** By the clock that cannot be set */
  endsAtMs: number;
  /** How many of them a store that counts for several processes has not been told of */
  untold: number;
  /** Called when as many were denied as the minute allows */
  onLimit: () => void;
}

/** What is known of one subject, such as the counters of the windows in which it was counted. */
interface SubjectState extends Partial<Record<WindowName, Counter>> {
  /** Undefined while none were denied */
  denied: Denied | undefined;
  /** When a store that counts for several processes last replaced its counters */
  replacedAtMs: number;
}

const NOT_STARTED: Counter = { count: 0, endsAtMs: 0 };
const NOT_REPLACED = Number.NEGATIVE_INFINITY;

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
export class MemoryStore extends RateLimiterCompatibleAbstract {
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

  /** What the library calls when Redis fails */
  override async consume(id: string, cost: number, options: ConsumeOptions): Promise<RateLimitResult> {
    return this.decide(id, cost, options);
  }

  /** The same, without a promise. */
  decide(id: string, cost: number, { windows, counts }: ConsumeOptions): RateLimitResult {
    const clockMs = this.#clock();
    const known = readCounters(this.#subjects.get(id), windows, clockMs);
    const isAllowed = hasRoom(windows, known, cost);
    let counters = known;
    if (isAllowed && counts) {
      counters = windows.map(({ lengthMs }, index) => {
        const { count, msLeft } = known[index] as WindowCounter;
        return { count: count + cost, msLeft: msLeft || lengthMs };
      });
      this.#write(id, windows, counters, clockMs);
    }
    return new RateLimitResult(windows, counters, { isAllowed, cost, nowMs: this.#now() });
  }

  /** The counters of a subject, and how long ago they were replaced: Infinity for never. */
  peek(id: string, windows: readonly Window[]): { counters: readonly WindowCounter[]; ageMs: number } {
    const clockMs = this.#clock();
    const state = this.#subjects.get(id);
    return {
      counters: readCounters(state, windows, clockMs),
      ageMs: clockMs - (state?.replacedAtMs ?? NOT_REPLACED),
    };
  }

  /** Sets the counters of a subject to those of a store that counts for several processes. */
  replace(id: string, windows: readonly Window[], counters: readonly WindowCounter[]): void {
    const clockMs = this.#clock();
    this.#write(id, windows, counters, clockMs).replacedAtMs = clockMs;
  }

  /**
   * Counts denied requests by their cost. When as many were denied within a minute as `limit`, calls `onLimit`, now or once a
   * store that counts for several processes says so, and counts from 0 again.
   */
  countDenied(id: string, cost: number, limit: number, onLimit: () => void): void {
    const clockMs = this.#clock();
    const state = this.#find(id);
    if (state.denied === undefined || state.denied.endsAtMs <= clockMs)
      state.denied = { count: 0, endsAtMs: clockMs + DENIED_WINDOW_MS, untold: 0, onLimit };
    const { denied } = state;
    denied.count += cost;
    denied.untold += cost;
    denied.onLimit = onLimit;
    if (denied.count < limit) return;
    denied.count = 0;
    onLimit();
  }

  /** Counts from 0. What is still to be told is told. */
  resetDenied(id: string): void {
    const denied = this.#subjects.get(id)?.denied;
    if (denied !== undefined) denied.count = 0;
  }

  /** The denied requests that are to be told to a store that counts for several processes, which counts them as told. */
  takeDenied(id: string): number {
    const denied = this.#subjects.peek(id)?.denied;
    if (denied === undefined || denied.endsAtMs <= this.#clock()) return 0;
    const { untold } = denied;
    denied.untold = 0;
    return untold;
  }

  /** For what was taken, and could not be told. */
  keepDenied(id: string, untold: number): void {
    const denied = this.#subjects.get(id)?.denied;
    if (denied !== undefined) denied.untold += untold;
  }

  /** Whether there is anything to tell. */
  hasUntold(id: string): boolean {
    return (this.#subjects.peek(id)?.denied?.untold ?? 0) > 0;
  }

  /** Sets the denied requests to the sum of a store that counts for several processes, and from 0 when it is the limit. */
  replaceDenied(id: string, [sum, msLeft]: readonly [sum: number, msLeft: number], limit = sum): void {
    const denied = this.#subjects.get(id)?.denied;
    if (denied === undefined) return;
    const isLimit = sum >= limit;
    denied.count = (isLimit ? 0 : sum) + denied.untold;
    denied.endsAtMs = this.#clock() + msLeft;
    if (isLimit) denied.onLimit();
  }

  #find(id: string): SubjectState {
    const known = this.#subjects.get(id);
    if (known !== undefined) return known;
    const state: SubjectState = { denied: undefined, replacedAtMs: NOT_REPLACED };
    this.#subjects.set(id, state);
    return state;
  }

  #write(
    id: string,
    windows: readonly Window[],
    counters: readonly WindowCounter[],
    clockMs: number,
  ): SubjectState {
    const state = this.#find(id);
    for (const [index, { name }] of windows.entries()) {
      const { count, msLeft } = counters[index] as WindowCounter;
      state[name] = { count, endsAtMs: clockMs + msLeft };
    }
    return state;
  }
}

function readCounters(
  state: SubjectState | undefined,
  windows: readonly Window[],
  clockMs: number,
): readonly WindowCounter[] {
  return windows.map(({ name }) => {
    const { count, endsAtMs } = state?.[name] ?? NOT_STARTED;
    return endsAtMs > clockMs ? { count, msLeft: endsAtMs - clockMs } : { count: 0, msLeft: 0 };
  });
}
