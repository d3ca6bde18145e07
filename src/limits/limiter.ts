import { nextBanMs } from './bans.js';
import { type Log, RedisLink } from './circuit-breaker.js';
import { type Decision, decisionOf, stateOf, type WindowState } from './decision.js';
import { MemoryLimiter } from './memory-store.js';
import type { Limits } from './plans.js';
import { openClient } from './redis-client.js';
import { probeWindows, RedisLimiter } from './redis-store.js';
import { readFrom } from './verdict.js';
import { type Reading, windowsOf } from './windows.js';

/** Who is counted: an API key by its uuid, or a caller without one by `addressId` of its client address. */
export interface Subject {
  kind: 'key' | 'address';
  id: string;
  limits: Limits;
}

/** What an operator is shown of a key. */
export interface Standing {
  windows: WindowState[];
  /** The end of the ban that runs, in Unix milliseconds. */
  ban: { untilMs: number } | null;
  /** How long a ban that began now would last. */
  nextBanSeconds: number;
}

export interface Limiter {
  /**
   * Decides on `cost` requests (1, or the number of calls of a batch), whole. A refusal counts towards a ban unless
   * `isAnswered` is false: the caller is then told of something else. Never rejects; waits 160 ms at most,
   * and only for the first failure of Redis. A refusal that is already known is answered without a promise.
   */
  take(subject: Subject, cost: number, isAnswered?: boolean): Decision | Promise<Decision>;
  /** Reads a key's windows and ban and takes nothing. Rejects when Redis is configured and away for 2 s. */
  inspect(keyId: string, limits: Limits): Promise<Standing>;
  /**
   * Lifts a key's ban and forgets its doubling and the refusals counted; felt on every node within a second.
   * Rejects when Redis is configured and away for 2 s.
   */
  unban(keyId: string): Promise<void>;
  /** `degraded`: Redis is configured and away, the memory of this process decides. */
  readonly state: 'memory' | 'redis' | 'degraded';
  /** Resolves when counting is as exact as it gets, or when Redis has not been heard of for so many milliseconds. */
  ready(withinMs: number): Promise<void>;
  /** Ends the connection to Redis. A limiter that is closed decides from memory. */
  close(): Promise<void>;
}

export interface LimiterOptions {
  /** None: memory. One: Redis or Valkey. Several: the nodes of a cluster. */
  redisUrls: readonly string[];
  log: Log;
  /** Starts every key in Redis. Default `limits`. */
  prefix?: string;
  /** Unix milliseconds. Default `Date.now`. Redis counts by its own clock. */
  clock?: () => number;
}

/**
 * How many subjects of each kind one process remembers; about 75 MB when both are full. Beyond it the one not seen
 * for longest is forgotten: it starts anew where memory decides, and loses nothing where Redis does.
 */
export const mostRemembered = { key: 100_000, address: 50_000 } as const;

/** How long a refusal by Redis is repeated without asking it again: after this an operator's change is felt. */
const trustedMs = 1_000;

const operatorWaitMs = 2_000;

/** A limiter over memory alone, or over Redis with memory beside it. Returns at once; Redis is connected behind. */
export function createLimiter(options: LimiterOptions): Limiter {
  return new TieredLimiter(options);
}

interface Tier {
  memory: MemoryLimiter;
  redis: RedisLimiter | null;
}

class TieredLimiter implements Limiter {
  readonly #clock: () => number;
  readonly #log: Log;
  readonly #link: RedisLink | null;
  readonly #tiers: Record<Subject['kind'], Tier>;

  constructor({ redisUrls, log, prefix = 'limits', clock = Date.now }: LimiterOptions) {
    this.#clock = clock;
    this.#log = log;
    const client = redisUrls.length > 0 ? openClient(redisUrls) : null;
    const link = client && new RedisLink(client, prefix, probeWindows, log);
    const tier = (kind: Subject['kind']): Tier => {
      const memory = new MemoryLimiter(`${prefix}:${kind}`, mostRemembered[kind], clock);
      return { memory, redis: client && link && new RedisLimiter(client, link, memory) };
    };
    this.#link = link;
    this.#tiers = { key: tier('key'), address: tier('address') };
  }

  get state(): Limiter['state'] {
    if (!this.#link) return 'memory';
    return this.#link.up ? 'redis' : 'degraded';
  }

  take(subject: Subject, cost: number, isAnswered = true): Decision | Promise<Decision> {
    const { memory, redis } = this.#tiers[subject.kind];
    const windows = windowsOf(subject.limits);
    const maxAgeMs = this.#link?.up ? trustedMs : Number.POSITIVE_INFINITY;
    const known = memory.knownRefusal(subject.id, windows, cost, maxAgeMs);
    const settle = (reading: Reading) => {
      const decision = decisionOf(windows, reading, cost, this.#clock());
      const counts = isAnswered && decision.code === 'rate_limit_exceeded' && subject.kind === 'key';
      return counts ? this.#countRefusal(subject, decision, cost) : decision;
    };
    if (known) return settle(known);
    return readFrom(redis ?? memory, subject.id, windows, cost).then(settle);
  }

  async inspect(keyId: string, limits: Limits): Promise<Standing> {
    const { memory, redis } = this.#tiers.key;
    await this.#link?.ready(operatorWaitMs);
    const windows = windowsOf(limits);
    const reading = await readFrom(redis ?? memory, keyId, windows, 0);
    const nowMs = this.#clock();
    return {
      windows: windows.map((window, index) => stateOf(window, reading.windows[index], nowMs)),
      ban: reading.banLeftMs > 0 ? { untilMs: nowMs + reading.banLeftMs } : null,
      nextBanSeconds: nextBanMs({ leftMs: reading.banLeftMs, lengthMs: reading.banLengthMs }) / 1000,
    };
  }

  async unban(keyId: string): Promise<void> {
    const { memory, redis } = this.#tiers.key;
    await this.#link?.ready(operatorWaitMs);
    if (redis) await redis.pardon(keyId);
    else memory.pardon(keyId);
  }

  async ready(withinMs: number): Promise<void> {
    await this.#link?.ready(withinMs).catch(() => {});
  }

  async close(): Promise<void> {
    this.#link?.close();
  }

  #countRefusal(subject: Subject, decision: Decision, cost: number): Decision | Promise<Decision> {
    const { memory, redis } = this.#tiers.key;
    if (!memory.countRefusal(subject.id, cost, subject.limits.perMinute)) return decision;
    this.#log.info({ keyId: subject.id }, 'A key is banned for being refused too often');
    return redis ? redis.ban(subject.id).then(() => decision) : decision;
  }
}
