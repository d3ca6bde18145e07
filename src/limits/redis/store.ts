import { RateLimiterRedis } from 'rate-limiter-flexible';
import { createBatchLoader } from '../../batching/batch-loader.js';
import type { CircuitBreaker } from '../circuit-breaker.js';
import type { ConsumeOptions, InsuranceLimiter, LimitStore, StoreOptions } from '../limit-store.js';
import { RateLimitResult } from '../rate-limit-result.js';
import { hasRoom, type Window, type WindowCounter } from '../windows.js';
import type { RedisConnection } from './connection.js';

export interface RedisStoreOptions extends Omit<StoreOptions, 'kind'> {
  readonly connection: Pick<RedisConnection, 'consumeLimits' | 'isCluster'>;
  readonly breaker: CircuitBreaker;
  readonly keyPrefix: string;
}

/** The most calls that one script decides on: Redis does nothing else meanwhile, for about a millisecond. */
const MAX_BATCH_SIZE = 250;
const UNKNOWN: WindowCounter = { count: 0, msLeft: 0 };
/** A window with less time left may have ended in Redis while a reply was on its way, which is no loss. */
const LAST_MS = 1_000;

interface Call {
  readonly id: string;
  readonly cost: number;
  readonly windows: readonly Window[];
}

/** A call as CONSUME_SCRIPT takes it */
type Question = readonly [cost: number, ...windows: (readonly number[])[]];

interface Reply {
  readonly isAllowed: boolean;
  readonly counters: readonly WindowCounter[];
}

/**
 * rate-limiter-flexible's Redis limiter with a `_consume` of our own, which decides on all windows in one script, and on
 * all calls that wait. The library's `consume` around it distinguishes a denial from a failure, and falls back to the
 * insurance limiter when Redis fails.
 *
 * The library's own way of combining windows, a union of limiters, takes a round trip per window and counts in one
 * window requests that another denies.
 */
export class RedisStore extends RateLimiterRedis implements LimitStore {
  readonly #connection: RedisStoreOptions['connection'];
  readonly #breaker: CircuitBreaker;
  readonly #memory: InsuranceLimiter;
  readonly #now: () => number;
  readonly #calls = createBatchLoader((calls: readonly Call[]) => this.#decide(calls), {
    maxSize: MAX_BATCH_SIZE,
  });

  constructor({ connection, breaker, keyPrefix, insuranceLimiter, now }: RedisStoreOptions) {
    // The library requires points and a duration; here the limits come with each call.
    super({ storeClient: connection, keyPrefix, points: 0, duration: 0, insuranceLimiter });
    this.#connection = connection;
    this.#breaker = breaker;
    this.#memory = insuranceLimiter;
    this.#now = now;
  }

  declare consume: LimitStore['consume'];

  /** The library's extension point: resolves when allowed, rejects with the result when denied. */
  async _consume(id: string, cost: number, { windows }: ConsumeOptions): Promise<RateLimitResult> {
    const result = this.#toResult(await this.#calls.load({ id, cost, windows }), cost, windows);
    if (!result.isAllowed) throw result;
    return result;
  }

  async read(id: string, cost: number, { windows }: ConsumeOptions): Promise<RateLimitResult> {
    const { counters } = await this.#calls.load({ id, cost: 0, windows });
    return this.#toResult({ isAllowed: hasRoom(windows, counters, cost), counters }, cost, windows);
  }

  #toResult({ isAllowed, counters }: Reply, cost: number, windows: readonly Window[]): RateLimitResult {
    return new RateLimitResult(windows, counters, { isAllowed, cost, nowMs: this.#now() });
  }

  /** One script for all calls; in a cluster, one for those of each subject. */
  async #decide(calls: readonly Call[]): Promise<readonly (Reply | Error)[]> {
    if (!this.#connection.isCluster) return this.#runScript(calls);
    const ids = [...new Set(calls.map(({ id }) => id))];
    const decide = async (id: string) => this.#runScript(calls.filter((call) => call.id === id));
    const replies = await Promise.all(ids.map(decide));
    const byId = new Map(ids.map((id, index) => [id, replies[index]]));
    return calls.map(({ id }) => byId.get(id)?.shift() as Reply | Error);
  }

  /**
   * The library takes any error for a failure of Redis and turns to the insurance limiter without a word, so an error of
   * this class would go unnoticed: it opens the circuit breaker, which logs it and shows as `degraded`.
   */
  async #runScript(calls: readonly Call[]): Promise<(Reply | Error)[]> {
    const keys = calls.map(({ id }) => toKey(this.keyPrefix, id));
    const [key] = keys as [string];
    try {
      const questions = JSON.stringify(calls.map((call) => this.#toQuestion(call)));
      const answers = await this.#breaker.run(key, () => this.#connection.consumeLimits(keys, questions));
      return calls.map(({ id, windows }, index) => {
        const reply = toReply(answers[index] as number[]);
        this.#memory.replace(id, windows, reply.counters);
        return reply;
      });
    } catch (error) {
      this.#breaker.open(error, key);
      return calls.map(() => error as Error);
    }
  }

  /** With what this node knows by now. */
  #toQuestion({ id, cost, windows }: Call): Question {
    return toQuestion(cost, windows, this.#memory.peek(id, windows)?.counters);
  }
}

/**
 * The trial of the circuit breaker: the same script, writing, in the slot of the key that failed. It uses every right that
 * counting needs: the window is over by the next trial, so each sets an expiry, and the first run on a connection sends
 * the script, the second its hash.
 */
export async function tryRedis(connection: RedisConnection, key: string): Promise<void> {
  const window: Window = { name: 'minute', lengthMs: 1, limit: Number.MAX_SAFE_INTEGER };
  const questions = JSON.stringify([toQuestion(1, [window], undefined)]);
  for (let run = 0; run < 2; run += 1) await connection.consumeLimits([`${key}:trial`], questions);
}

/** The id is a hash tag: everything that a cluster stores about a subject is in one slot. */
export function toKey(keyPrefix: string, id: string): string {
  return `${keyPrefix}:{${id}}`;
}

function toQuestion(
  cost: number,
  windows: readonly Window[],
  known: readonly WindowCounter[] | undefined,
): Question {
  const toWindow = ({ limit, lengthMs }: Window, index: number) => {
    const { count, msLeft } = known?.[index] ?? UNKNOWN;
    return [limit, lengthMs, msLeft < LAST_MS ? 0 : count, msLeft];
  };
  return [cost, ...windows.map(toWindow)];
}

function toReply([allowed, ...values]: readonly number[]): Reply {
  const counters: WindowCounter[] = [];
  for (let index = 0; index < values.length; index += 2) {
    counters.push({ count: values[index] ?? 0, msLeft: values[index + 1] ?? 0 });
  }
  return { isAllowed: allowed === 1, counters };
}
