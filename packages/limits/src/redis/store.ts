import { type BatchLoader, createBatchLoader } from '@animal-store/batch-loader';
import { RateLimiterCompatibleAbstract } from 'rate-limiter-flexible';
import { CircuitBreaker, type CircuitBreakerOptions } from '../circuit-breaker.js';
import type { MemoryStore } from '../memory-store.js';
import {
  type ConsumeOptions,
  hasRoom,
  RateLimitResult,
  type Window,
  type WindowCounter,
} from '../rate-limit-result.js';
import { RedisConnection } from './connection.js';
import type { RedisConnectionOptions } from './options.js';
import { createConsumeScript, type ScriptReply } from './scripts.js';
import { createUrlReader } from './urls.js';

export interface RedisOptions
  extends Pick<RedisConnectionOptions, 'readUrls'>,
    Pick<CircuitBreakerOptions, 'log' | 'observe' | 'timeoutMs'>,
    Pick<RedisStoreOptions, 'names' | 'channelName'> {
  /** The prefix of every key */
  readonly prefix: string;
  /** The URLs while no others can be read */
  readonly urls: readonly string[];
}

/** Redis or Valkey, which connects in the background, behind a circuit breaker. */
export function openRedis(options: RedisOptions) {
  const { names, urls, prefix, log, observe, timeoutMs, channelName } = options;
  const breaker = new CircuitBreaker({
    trial: (key) => tryRedis(connection, key),
    trialKey: toKey(prefix, ''),
    reconnect: () => connection.reconnect(),
    log,
    observe,
    timeoutMs,
  });
  const connection = new RedisConnection({
    script: createConsumeScript(names),
    readUrls: createUrlReader(options.readUrls, urls, (error) => breaker.noteReason(error)),
    onReady: () => breaker.tryAgain(),
    onClose: () => breaker.lose(),
    onError: (error) => breaker.noteReason(error),
  });
  return {
    /** Whether Redis decides now. If not, memory does. */
    get isAvailable() {
      return breaker.isClosed;
    },
    /** A store for the subjects of one kind */
    createStore: (kind: string, options: Pick<RedisStoreOptions, 'insuranceLimiter' | 'now'>) =>
      new RedisStore({
        ...options,
        names,
        connection,
        breaker,
        channelName,
        keyPrefix: `${prefix}:${kind}`,
      }),
    /** @throws Error when Redis is still unavailable after `withinMs` */
    ready: (withinMs: number) => breaker.ready(withinMs),
    close() {
      breaker.dispose();
      connection.close();
    },
  };
}

interface RedisStoreOptions {
  readonly connection: Pick<RedisConnection, 'consumeLimits' | 'isCluster'>;
  readonly breaker: CircuitBreaker;
  readonly keyPrefix: string;
  /** The names of all windows, in the order in which the script got them */
  readonly names: readonly string[];
  /** See BatchOptions */
  readonly channelName: string;
  /** The library's name for what decides when Redis fails: this node's memory, with the counters of the last reply */
  readonly insuranceLimiter: MemoryStore;
  /** Unix milliseconds */
  readonly now: () => number;
}

/** The most calls that one script decides on: Redis does nothing else meanwhile, for about a millisecond. */
const MAX_CALLS_PER_SCRIPT = 250;
/** A window with less time left may have ended in Redis while a reply was on its way, which is no loss. */
const LAST_MS = 1_000;

/** A call as the script takes it */
type Question = [cost: number, restarts: 0 | 1, ...windows: AskedWindow[]];
type AskedWindow = [n: number, limit: number, lengthMs: number, count: number, msLeft: number];

interface Call extends ConsumeOptions {
  readonly id: string;
  readonly cost: number;
}

/**
 * A limiter of rate-limiter-flexible that decides on all windows in one script, and on all calls that wait. When Redis fails,
 * the insurance limiter decides, as it does for the limiters that the library brings.
 */
export class RedisStore extends RateLimiterCompatibleAbstract {
  override readonly keyPrefix: string;
  readonly #options: RedisStoreOptions;
  readonly #calls: BatchLoader<Call, RateLimitResult>;
  /** The number of each window in a call */
  readonly #numbers: ReadonlyMap<string, number>;

  constructor(options: RedisStoreOptions) {
    super();
    const { keyPrefix, names, channelName } = options;
    this.keyPrefix = keyPrefix;
    this.#options = options;
    this.#numbers = new Map(names.map((name, index) => [name, index + 1]));
    this.#calls = createBatchLoader((calls) => this.#decide(calls), {
      maxSize: MAX_CALLS_PER_SCRIPT,
      channelName,
    });
  }

  /** Never rejects: the library's own limiters reject with the result of a request that they deny. */
  override consume(id: string, cost: number, options: ConsumeOptions): Promise<RateLimitResult> {
    const { insuranceLimiter } = this.#options;
    return this.#calls
      .load({ id, cost, ...options })
      .catch(() => insuranceLimiter.consume(id, cost, options));
  }

  /** Runs one script for all calls; in a cluster, one for the calls of each subject. */
  async #decide(calls: readonly Call[]): Promise<readonly (RateLimitResult | Error)[]> {
    if (!this.#options.connection.isCluster) return this.#runScript(calls);
    const ids = [...new Set(calls.map(({ id }) => id))];
    const decide = async (id: string) => this.#runScript(calls.filter((call) => call.id === id));
    const results = await Promise.all(ids.map(decide));
    const byId = new Map(ids.map((id, index) => [id, results[index]]));
    return calls.map(({ id }) => byId.get(id)?.shift() as RateLimitResult | Error);
  }

  /**
   * The insurance limiter decides silently after any error, so a mistake in this class would go unnoticed. So any error
   * opens the circuit breaker, which logs it and shows as `degraded`.
   */
  async #runScript(calls: readonly Call[]): Promise<(RateLimitResult | Error)[]> {
    const { breaker, connection } = this.#options;
    const keys = calls.map(({ id }) => toKey(this.keyPrefix, id));
    const [key] = keys as [string];
    try {
      const questions = JSON.stringify(calls.map((call) => this.#toQuestion(call)));
      const reply = await breaker.run(key, () => connection.consumeLimits(keys, questions));
      const replies: ScriptReply[] = JSON.parse(reply);
      return calls.map((call, index) => this.#toResult(call, replies[index] as ScriptReply));
    } catch (error) {
      breaker.open(error, key);
      return calls.map(() => error as Error);
    }
  }

  /** A call as the script takes it, with what this node knows by now. */
  #toQuestion({ id, cost, windows, counts, restarts = false }: Call): Question {
    const { counters, ageMs } = this.#options.insuranceLimiter.peek(id, windows);
    // A reply's counts of a window with `restarts` may be outdated, because the window may have restarted. So only the
    // counts that this node has added since are sent.
    const isOver = restarts && ageMs < Number.POSITIVE_INFINITY;
    const question: Question = [counts ? cost : 0, restarts ? 1 : 0];
    for (let index = 0; index < windows.length; index += 1) {
      const { name, limit, lengthMs } = windows[index] as Window;
      const { count, msLeft } = counters[index] as WindowCounter;
      const known = isOver || msLeft < LAST_MS ? 0 : count;
      question.push([this.#numbers.get(name) as number, limit, lengthMs, known, msLeft]);
    }
    return question;
  }

  #toResult(call: Call, [allowed, ...held]: ScriptReply): RateLimitResult {
    const { id, cost, windows, counts } = call;
    const { insuranceLimiter, now } = this.#options;
    const counters = held.map(([count, msLeft]) => ({ count, msLeft }));
    insuranceLimiter.replace(id, windows, counters);
    const isAllowed = counts ? allowed === 1 : hasRoom(windows, counters, cost);
    return new RateLimitResult(windows, counters, { isAllowed, cost, nowMs: now() });
  }
}

/**
 * The trial of the circuit breaker: the same script, writing, in the slot of the key that failed. It uses every right that
 * counting needs. The window is over by the next trial, so each trial sets an expiry, and the first run on a connection
 * sends the script, the second its hash.
 */
async function tryRedis(connection: RedisConnection, key: string): Promise<void> {
  if (!connection.isReady) throw new Error('There is no connection yet');
  // One request in a window of a millisecond
  const question = JSON.stringify([[1, 0, [1, Number.MAX_SAFE_INTEGER, 1, 0, 0]] satisfies Question]);
  for (let run = 0; run < 2; run += 1) await connection.consumeLimits([`${key}:trial`], question);
}

/** The id is a hash tag: everything that a cluster stores about a subject is in one slot. */
function toKey(keyPrefix: string, id: string): string {
  return `${keyPrefix}:{${id}}`;
}
