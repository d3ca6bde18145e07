import { LRUCache } from 'lru-cache';
import { RateLimiterCompatibleAbstract } from 'rate-limiter-flexible';
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

/** What is known of one subject, such as the counters of the windows in which it was counted. */
interface SubjectState {
  /** By the names of their windows */
  readonly counters: Record<string, Counter>;
  /** When a store that counts for several processes replaced the counters; never, if this store has counted since */
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
 * A limiter of rate-limiter-flexible that counts in the memory of this process, and insures the limiter of Redis. The
 * library's own memory limiter has one window per instance, counts what it denies, is unbounded, sets a timer for every
 * key, and has no clock that a test could move.
 *
 * There are no timers: windows that have ended are overwritten, or evicted with their subject.
 */
export class MemoryStore extends RateLimiterCompatibleAbstract {
  // The library sets these two on a limiter that insures another.
  override blockDuration = 0;
  override execEvenly = false;
  readonly #subjects: LRUCache<string, SubjectState>;
  readonly #clock: () => number;
  readonly #now: () => number;

  constructor({ maxSubjects, clock, now }: MemoryStoreOptions) {
    super();
    // With `max`, the cache would allocate memory for all subjects now, which takes a tenth of the start.
    this.#subjects = new LRUCache({ maxSize: maxSubjects, sizeCalculation: () => 1 });
    this.#clock = clock;
    this.#now = now;
  }

  /** Never rejects, see RedisStore */
  override async consume(id: string, cost: number, options: ConsumeOptions): Promise<RateLimitResult> {
    return this.decide(id, cost, options);
  }

  /** Decides without a promise. */
  decide(id: string, cost: number, { windows, counts, restarts }: ConsumeOptions): RateLimitResult {
    const clockMs = this.#clock();
    const known = readCounters(this.#subjects.get(id), windows, clockMs);
    const isAllowed = hasRoom(windows, known, cost);
    let counters = known;
    if (counts && (isAllowed || restarts)) {
      counters = windows.map(({ lengthMs }, index) => {
        const { count, msLeft } = known[index] as WindowCounter;
        return { count: isAllowed ? count + cost : 0, msLeft: msLeft || lengthMs };
      });
      this.#write(id, windows, counters, clockMs).replacedAtMs = NOT_REPLACED;
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

  #find(id: string): SubjectState {
    const known = this.#subjects.get(id);
    if (known !== undefined) return known;
    const state: SubjectState = { counters: {}, replacedAtMs: NOT_REPLACED };
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
      state.counters[name] = { count, endsAtMs: clockMs + msLeft };
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
    const { count, endsAtMs } = state?.counters[name] ?? NOT_STARTED;
    return endsAtMs > clockMs ? { count, msLeft: endsAtMs - clockMs } : { count: 0, msLeft: 0 };
  });
}
