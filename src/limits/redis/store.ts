import { RateLimiterRedis } from 'rate-limiter-flexible';
import type { CircuitBreaker } from '../circuit-breaker.js';
import type { ConsumeOptions, InsuranceLimiter, LimitStore, StoreOptions } from '../limit-store.js';
import { RateLimitResult } from '../rate-limit-result.js';
import { hasRoom, type Window, type WindowCounter } from '../windows.js';
import type { RedisConnection } from './connection.js';

export interface RedisStoreOptions extends Omit<StoreOptions, 'kind'> {
  readonly connection: Pick<RedisConnection, 'consumeLimits'>;
  readonly breaker: CircuitBreaker;
  readonly keyPrefix: string;
}

/** What CONSUME_SCRIPT returns when Redis counted less than this node knows. */
const LOST = 2;
const UNKNOWN: WindowCounter = { count: 0, msLeft: 0 };
/** A window with less time left may have ended in Redis while a reply was on its way, which is no loss. */
const LAST_MS = 1_000;

interface Reply {
  readonly isAllowed: boolean;
  readonly counters: readonly WindowCounter[];
}

/**
 * rate-limiter-flexible's Redis limiter with a `_consume` of our own, which decides on all windows in one script. The
 * library's `consume` around it distinguishes a denial from a failure, and falls back to the insurance limiter when
 * Redis fails.
 *
 * The library's own way of combining windows, a union of limiters, takes a round trip per window and counts in one
 * window requests that another denies.
 */
export class RedisStore extends RateLimiterRedis implements LimitStore {
  readonly #connection: RedisStoreOptions['connection'];
  readonly #breaker: CircuitBreaker;
  readonly #memory: InsuranceLimiter;
  readonly #clock: () => number;

  constructor({ connection, breaker, keyPrefix, insuranceLimiter, clock }: RedisStoreOptions) {
    // The library requires points and a duration; here the limits come with each call.
    super({ storeClient: connection, keyPrefix, points: 0, duration: 0, insuranceLimiter });
    this.#connection = connection;
    this.#breaker = breaker;
    this.#memory = insuranceLimiter;
    this.#clock = clock;
  }

  declare consume: LimitStore['consume'];

  /**
   * The library's extension point: resolves when allowed, rejects with the result when denied.
   *
   * The library takes any other error for a failure of Redis and turns to the insurance limiter without a word, so an
   * error of this class would go unnoticed: it opens the circuit breaker, which logs it and shows as `degraded`.
   */
  async _consume(id: string, cost: number, options: ConsumeOptions): Promise<RateLimitResult> {
    let result: RateLimitResult;
    try {
      result = this.#toResult(await this.#send(id, cost, options), cost, options.windows);
    } catch (error) {
      this.#breaker.open(error, toKey(this.keyPrefix, id));
      throw error;
    }
    if (!result.isAllowed) throw result;
    return result;
  }

  async read(id: string, cost: number, { windows }: ConsumeOptions): Promise<RateLimitResult> {
    const { counters } = await this.#send(id, 0, { windows });
    return this.#toResult({ isAllowed: hasRoom(windows, counters, cost), counters }, cost, windows);
  }

  #toResult({ isAllowed, counters }: Reply, cost: number, windows: readonly Window[]): RateLimitResult {
    return new RateLimitResult(windows, counters, { isAllowed, cost, nowMs: this.#clock() });
  }

  /** Asks again with all that this node knows by then when Redis turns out to have lost counters. */
  async #send(id: string, cost: number, { windows, known }: ConsumeOptions): Promise<Reply> {
    const key = toKey(this.keyPrefix, id);
    const run = (args: readonly number[]) =>
      this.#breaker.run(key, () => this.#connection.consumeLimits(key, args));
    let answer = await run(toArguments(windows, cost, known));
    if (answer[0] === LOST) {
      const counters = this.#memory.peek(id, windows)?.counters ?? [];
      const msLeft = counters.map((counter) => counter.msLeft);
      answer = await run([...toArguments(windows, cost, counters), ...msLeft]);
    }
    const reply = toReply(answer);
    this.#memory.replace(id, windows, reply.counters);
    return reply;
  }
}

/**
 * The probe of the circuit breaker: the same script, writing, in the slot of the key that failed. It uses every right that
 * counting needs: the window is over by the next probe, so each sets an expiry, and the first run on a connection sends
 * the script, the second its hash.
 */
export async function probeRedis(connection: RedisConnection, key: string): Promise<void> {
  const window: Window = { name: 'minute', lengthMs: 1, limit: Number.MAX_SAFE_INTEGER };
  for (let run = 0; run < 2; run += 1) {
    await connection.consumeLimits(`${key}:probe`, toArguments([window], 1, undefined));
  }
}

/** The id is a hash tag: everything that a cluster stores about a subject is in one slot. */
export function toKey(keyPrefix: string, id: string): string {
  return `${keyPrefix}:{${id}}`;
}

function toArguments(
  windows: readonly Window[],
  cost: number,
  known: readonly WindowCounter[] | undefined,
): number[] {
  const args = [cost, windows.length];
  for (const [index, { limit, lengthMs }] of windows.entries()) {
    const { count, msLeft } = known?.[index] ?? UNKNOWN;
    args.push(limit, lengthMs, msLeft < LAST_MS ? 0 : count);
  }
  return args;
}

function toReply([allowed, ...values]: number[]): Reply {
  const counters: WindowCounter[] = [];
  for (let index = 0; index < values.length; index += 2) {
    counters.push({ count: values[index] ?? 0, msLeft: values[index + 1] ?? 0 });
  }
  return { isAllowed: allowed === 1, counters };
}
