import { CircuitBreaker, type Log } from './circuit-breaker.js';
import type { ConsumeOptions, LimitStore } from './limit-store.js';
import { MemoryStore } from './memory-store.js';
import type { Limits } from './plans.js';
import { RateLimitResult } from './rate-limit-result.js';
import { createRedisClient } from './redis-client.js';
import { probe, RedisStore, toKey } from './redis-store.js';
import { hasRoom, toWindows } from './windows.js';

/** A caller with limits: an API key by its UUID, or a client without one by the `addressId` of its address. */
export interface Subject {
  readonly kind: 'key' | 'address';
  readonly id: string;
  readonly limits: Limits;
}

export interface Limiter {
  /**
   * Decides on `cost` requests (1, or the number of calls of a batch) as a whole. Never rejects; takes at most
   * REDIS_TIMEOUT_MS, and only for the requests that detect a failure of Redis. Returns no promise when it can decide
   * at once.
   */
  consume(subject: Subject, cost: number): RateLimitResult | Promise<RateLimitResult>;
  /** What `consume` would decide now. Counts nothing; never rejects. */
  read(subject: Subject, cost: number): RateLimitResult | Promise<RateLimitResult>;
  /** `degraded`: Redis is configured but cannot be used, so the memory of this process decides. */
  readonly state: 'memory' | 'redis' | 'degraded';
  /** Resolves when the configured store decides. @throws OperatorError when Redis does not after `withinMs` */
  ready(withinMs: number): Promise<void>;
  /** Ends the connection to Redis. A closed limiter decides from memory. */
  close(): Promise<void>;
}

export interface LimiterOptions {
  /** None: memory. One: Redis or Valkey. Several: the nodes of a cluster. */
  readonly redisUrls: readonly string[];
  readonly log: Log;
  /** The prefix of every key in Redis. Default `limits` */
  readonly prefix?: string;
  /** Unix milliseconds. Default `Date.now`. Redis counts by its own clock. */
  readonly clock?: () => number;
}

/**
 * How many subjects of each kind one process remembers, which takes about 75 MB when both are full. Beyond that, the
 * least recently seen is forgotten: its counts are lost if memory decides, but not if Redis does.
 */
export const MAX_SUBJECTS = { key: 100_000, address: 50_000 } as const;

/** A limiter over memory alone, or over Redis with memory as its fallback. Returns at once; Redis connects later. */
export function createLimiter(options: LimiterOptions): Limiter {
  return new FallbackLimiter(options);
}

interface Stores {
  readonly memory: MemoryStore;
  readonly redis: RedisStore | undefined;
}

/**
 * Redis decides; while it cannot, memory does. Memory holds the counters of Redis's last reply, so that it can continue
 * from there, and can deny without asking Redis where the result is certain. When Redis is back, the next request of
 * each subject carries the counters of memory over.
 */
class FallbackLimiter implements Limiter {
  readonly #clock: () => number;
  readonly #breaker: CircuitBreaker | undefined;
  readonly #stores: Readonly<Record<Subject['kind'], Stores>>;

  constructor({ redisUrls, log, prefix = 'limits', clock = Date.now }: LimiterOptions) {
    const client = redisUrls.length > 0 ? createRedisClient(redisUrls) : undefined;
    const breaker = client && new CircuitBreaker({ client, probe, probeKey: toKey(prefix, ''), log });
    const createStores = (kind: Subject['kind']): Stores => {
      const memory = new MemoryStore({ maxSubjects: MAX_SUBJECTS[kind], clock });
      if (client === undefined || breaker === undefined) return { memory, redis: undefined };
      const onCounters = memory.replace.bind(memory);
      const keyPrefix = `${prefix}:${kind}`;
      const redis = new RedisStore({
        client,
        breaker,
        keyPrefix,
        insuranceLimiter: memory,
        onCounters,
        clock,
      });
      return { memory, redis };
    };
    this.#clock = clock;
    this.#breaker = breaker;
    this.#stores = { key: createStores('key'), address: createStores('address') };
  }

  get state(): Limiter['state'] {
    if (this.#breaker === undefined) return 'memory';
    return this.#breaker.isClosed ? 'redis' : 'degraded';
  }

  consume({ kind, id, limits }: Subject, cost: number): RateLimitResult | Promise<RateLimitResult> {
    const { memory, redis } = this.#stores[kind];
    const windows = toWindows(limits);
    if (redis === undefined) return memory.consumeNow(id, cost, { windows });
    const last = memory.peek(id, windows);
    // Counters only grow until their window ends: what they deny now, Redis would deny too.
    if (last !== undefined && !hasRoom(windows, last.counters, cost)) {
      return new RateLimitResult(windows, last.counters, { isAllowed: false, cost, nowMs: this.#clock() });
    }
    // While the breaker is open the epoch is still the old one, but it may close before this request is sent.
    const isCurrent = this.#breaker?.isClosed === true && last?.epoch === this.#breaker.epoch;
    return settle(redis, id, cost, { windows, known: isCurrent ? undefined : last?.counters });
  }

  read({ kind, id, limits }: Subject, cost: number): RateLimitResult | Promise<RateLimitResult> {
    const { memory, redis } = this.#stores[kind];
    const windows = toWindows(limits);
    const last = memory.peek(id, windows);
    if (redis === undefined || last?.epoch === this.#breaker?.epoch) {
      const counters = last?.counters ?? [];
      const isAllowed = hasRoom(windows, counters, cost);
      return new RateLimitResult(windows, counters, { isAllowed, cost, nowMs: this.#clock() });
    }
    const options = { windows, known: last?.counters };
    return redis.read(id, cost, options).catch(() => memory.read(id, cost, options));
  }

  async ready(withinMs: number): Promise<void> {
    await this.#breaker?.ready(withinMs);
  }

  async close(): Promise<void> {
    this.#breaker?.dispose();
  }
}

/** Resolves with the result, whether the request is allowed or denied. */
async function settle(
  store: LimitStore,
  id: string,
  cost: number,
  options: ConsumeOptions,
): Promise<RateLimitResult> {
  try {
    return await store.consume(id, cost, options);
  } catch (result) {
    if (result instanceof RateLimitResult) return result;
    throw result;
  }
}
