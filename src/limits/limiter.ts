import type { Limits } from '../contract/plans.js';
import type { Log } from './circuit-breaker.js';
import type { LimitBackend, LimitStore } from './limit-store.js';
import { MemoryStore } from './memory-store.js';
import { RateLimitResult } from './rate-limit-result.js';
import { toWindows } from './windows.js';

/** A caller with limits: an API key by its UUID, or a client without one by the `addressId` of its address. */
export interface Subject {
  readonly kind: 'key' | 'address';
  readonly id: string;
  readonly limits: Limits;
}

export interface Limiter {
  /**
   * Decides on `cost` requests (1, or the number of calls of a batch) as a whole. Never rejects. Waits for one command
   * to Redis, or two when others are under way; none takes longer than REDIS_TIMEOUT_MS, after which memory decides.
   * Returns no promise when it can decide at once.
   */
  consume(subject: Subject, cost: number): RateLimitResult | Promise<RateLimitResult>;
  /** What `consume` would decide now. Counts nothing; never rejects. */
  read(subject: Subject, cost: number): RateLimitResult | Promise<RateLimitResult>;
  /** Whether the last known counters leave no room for `cost` requests. Asks nobody. */
  isDenied(subject: Subject, cost: number): boolean;
  /** `memory`; the name of the backend, such as `redis`; or `degraded` while memory decides in place of the backend */
  readonly state: string;
  /** Resolves when the configured store decides. @throws UnreachableError when Redis does not after `withinMs` */
  ready(withinMs: number): Promise<void>;
  /** Ends the connection to Redis. A closed limiter decides from memory. */
  close(): Promise<void>;
}

export interface LimiterOptions {
  /** None: memory. One: Redis or Valkey, a node of a cluster, or Sentinels. Several: nodes of a cluster. */
  readonly redisUrls: readonly string[];
  readonly log: Log;
  /** The prefix of every key in Redis. Default `limits` */
  readonly prefix?: string;
  /**
   * Milliseconds of a clock that cannot be set, by which memory counts. Default: the process's monotonic one. Redis counts
   * by its own.
   */
  readonly clock?: () => number;
  /** Unix milliseconds, for telling callers when a window ends, and nothing else. Default `Date.now` */
  readonly now?: () => number;
  /** Called with what each command of a request to Redis took, in seconds */
  readonly observeCommand?: (seconds: number) => void;
}

/**
 * How many subjects of each kind one process remembers, which takes about 75 MB when both are full. Beyond that, the
 * least recently seen is forgotten: its counts are lost if memory decides, but not if Redis does.
 */
export const MAX_SUBJECTS = { key: 100_000, address: 50_000 } as const;

/**
 * How long a node repeats a denial of the backend without asking again. After it, the remaining requests and reset times
 * that the denial reports would be too old: other nodes count, too.
 */
const DENIAL_TTL_MS = 1_000;

/**
 * A limiter over memory alone, or over Redis with memory as its fallback. Redis connects later, and its client is loaded
 * only if it is used.
 */
export async function createLimiter({
  redisUrls,
  log,
  prefix = 'limits',
  clock = () => Math.floor(performance.now()),
  now = Date.now,
  observeCommand = () => {},
}: LimiterOptions): Promise<Limiter> {
  if (redisUrls.length === 0) return new FallbackLimiter(undefined, clock, now);
  const { createRedisBackend } = await import('./redis/backend.js');
  const backend = createRedisBackend({ urls: redisUrls, prefix, log, observe: observeCommand });
  return new FallbackLimiter(backend, clock, now);
}

interface Stores {
  readonly memory: MemoryStore;
  /** Undefined without a backend */
  readonly shared: LimitStore | undefined;
}

/**
 * The backend decides; while it cannot, memory does. Memory holds the counters of the backend's last reply, so that it
 * can continue from there, and can deny without asking where the result is certain. When the backend is back, or has
 * lost its counters, it continues from those of memory.
 */
class FallbackLimiter implements Limiter {
  readonly #now: () => number;
  readonly #backend: LimitBackend | undefined;
  readonly #stores: Readonly<Record<Subject['kind'], Stores>>;

  constructor(backend: LimitBackend | undefined, clock: () => number, now: () => number) {
    const createStores = (kind: Subject['kind']): Stores => {
      const memory = new MemoryStore({ maxSubjects: MAX_SUBJECTS[kind], clock, now });
      return { memory, shared: backend?.createStore({ kind, insuranceLimiter: memory, now }) };
    };
    this.#now = now;
    this.#backend = backend;
    this.#stores = { key: createStores('key'), address: createStores('address') };
  }

  get state(): string {
    if (this.#backend === undefined) return 'memory';
    return this.#backend.isAvailable ? this.#backend.name : 'degraded';
  }

  consume({ kind, id, limits }: Subject, cost: number): RateLimitResult | Promise<RateLimitResult> {
    const { memory, shared } = this.#stores[kind];
    const windows = toWindows(limits);
    if (shared === undefined) return memory.consumeNow(id, cost, { windows });
    const last = memory.hasRoom(id, windows, cost) ? undefined : memory.peek(id, windows);
    // Counters only grow until their window ends: what they deny now, the backend would deny too.
    if (last !== undefined && (!this.#backend?.isAvailable || last.ageMs <= DENIAL_TTL_MS)) {
      return new RateLimitResult(windows, last.counters, { isAllowed: false, cost, nowMs: this.#now() });
    }
    return shared.consume(id, cost, { windows }).catch(toDenial);
  }

  read({ kind, id, limits }: Subject, cost: number): RateLimitResult | Promise<RateLimitResult> {
    const { memory, shared } = this.#stores[kind];
    const windows = toWindows(limits);
    const options = { windows };
    if (shared === undefined || memory.peek(id, windows) !== undefined)
      return memory.readNow(id, cost, options);
    return shared.read(id, cost, options).catch(() => memory.readNow(id, cost, options));
  }

  isDenied({ kind, id, limits }: Subject, cost: number): boolean {
    return !this.#stores[kind].memory.hasRoom(id, toWindows(limits), cost);
  }

  async ready(withinMs: number): Promise<void> {
    await this.#backend?.ready(withinMs);
  }

  async close(): Promise<void> {
    this.#backend?.close();
  }
}

/** rate-limiter-flexible rejects with the result of a denied request. */
function toDenial(result: unknown): RateLimitResult {
  if (result instanceof RateLimitResult) return result;
  throw result;
}
