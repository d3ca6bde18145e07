import { createDenials } from './denials.js';
import { checkOptions, type LimiterOptions } from './limiter-options.js';
import { MemoryStore } from './memory-store.js';
import { hasRoom, type RateLimitResult, toWindows } from './rate-limit-result.js';
import { checkCost, checkSubject, type Subject } from './subject.js';

/**
 * A caller's mistake is an error of that call alone, thrown at once. Each method that takes a subject or a cost throws a
 * TypeError for a subject without a valid kind, id or limits, and for a limit that is not a number. It throws a RangeError for
 * a limit or a cost that is not a whole number from 0.
 */
export interface Limiter<Field extends string = string> {
  /**
   * Decides on `cost` requests (1, or the number of calls of a batch) as a whole. Waits for one command to Redis, or two when
   * others are under way; none takes longer than `commandTimeoutMs`, after which memory decides. Never rejects.
   * Returns no promise when memory decides: without Redis, while it is unavailable, and for what is certain to be denied.
   */
  consume(subject: Subject<Field>, cost: number): RateLimitResult | Promise<RateLimitResult>;
  /** What `consume` would decide, by counts that may be REPLY_TTL_MS old. Counts nothing. */
  read(subject: Subject<Field>, cost: number): RateLimitResult | Promise<RateLimitResult>;
  /**
   * Counts a denied request by its cost. When as many requests of the subject were denied within the first window as the
   * window allows, `onLimit` is called and the count starts from 0 again. With Redis, the denials of all nodes count;
   * without Redis, and while Redis is away, only those of this node. Await the result: it waits for the promise of
   * `onLimit`, and fails as that does.
   *
   * @throws RangeError for a subject without a limit in the first window
   */
  countDenied(subject: Subject<Field>, cost: number, onLimit: () => unknown): Promise<void> | undefined;
  /**
   * Counts the denied requests of a subject from 0, because another node has found that its limit is reached.
   *
   * @throws RangeError for a subject without a limit in the first window
   */
  resetDenied(subject: Subject<Field>): void;
  /** Whether the last known counters leave no room for `cost` requests. Asks nobody. */
  isDenied(subject: Subject<Field>, cost: number): boolean;
  /** What decides; `degraded` while memory decides in place of Redis */
  readonly state: 'memory' | 'redis' | 'degraded';
  /**
   * Resolves when the configured store decides.
   *
   * @throws Error when Redis does not decide after `withinMs`. @throws RangeError for a `withinMs` that is not a number from 0
   */
  ready(withinMs: number): Promise<void>;
  /** Ends the connection to Redis. A closed limiter decides from memory. */
  close(): Promise<void>;
}

/**
 * How many subjects of each kind one process remembers, which takes about 55 MB when all are full. Beyond that, the least
 * recently seen is forgotten: its counts are lost if memory decides, but not if Redis does. The denials of a key are a
 * subject of their own.
 */
export const MAX_SUBJECTS = { key: 100_000, address: 50_000, denied: 50_000 } as const;

/** How long a denial of Redis is repeated without asking. Later, the numbers that callers get would be too old. */
const REPLY_TTL_MS = 1_000;

/** Longer than a pause of either side, such as a garbage collection, and short beside what callers wait for. */
const COMMAND_TIMEOUT_MS = 160;

/**
 * A limiter over memory alone, or over Redis, which decides as long as it can; while it cannot, memory does. Memory holds
 * the counters of Redis' last reply, continues from there, and denies without asking where the result is certain. When
 * Redis is back, or has lost its counters, it continues from those of memory.
 *
 * Redis connects later, and its client is loaded only if it is used.
 *
 * @throws TypeError for windows that cannot be counted in, and for other invalid options
 */
export async function createLimiter<Field extends string>(
  options: LimiterOptions<Field>,
): Promise<Limiter<Field>> {
  checkOptions(options);
  const {
    windows: kinds,
    redisUrls,
    readRedisUrls = () => redisUrls,
    log,
    prefix = 'limits',
    clock: readClock = () => performance.now(),
    now = Date.now,
    observeCommand = () => {},
    commandTimeoutMs = COMMAND_TIMEOUT_MS,
    channelName = 'limits.batch',
  } = options;
  // Redis takes no fractions of a millisecond.
  const clock = () => Math.floor(readClock());
  const { openRedis } = redisUrls.length > 0 ? await import('./redis/store.js') : {};
  const redis = openRedis?.({
    names: kinds.map(({ name }) => name),
    urls: redisUrls,
    readUrls: readRedisUrls,
    prefix,
    log,
    observe: observeCommand,
    timeoutMs: commandTimeoutMs,
    channelName,
  });
  const createStores = (kind: keyof typeof MAX_SUBJECTS) => {
    const memory = new MemoryStore({ maxSubjects: MAX_SUBJECTS[kind], clock, now });
    const shared = redis?.createStore(kind, { insuranceLimiter: memory, now });
    // While Redis is unavailable nothing waits, not even for its rejection.
    return { memory, findShared: () => (redis?.isAvailable ? shared : undefined) };
  };
  const stores = { key: createStores('key'), address: createStores('address') };
  const decide = (subject: Subject<Field>, cost: number, isCounted: boolean) => {
    checkSubject(subject);
    checkCost(cost);
    const { kind, id, limits } = subject;
    const { memory, findShared } = stores[kind];
    const windows = toWindows(kinds, limits);
    const counts = isCounted && cost > 0 && windows.length > 0;
    const options = { windows, counts };
    const shared = windows.length > 0 ? findShared() : undefined;
    if (shared === undefined) return memory.decide(id, cost, options);
    const { counters, ageMs } = memory.peek(id, windows);
    // Counters only grow until their window ends: what they deny now, Redis would deny, too.
    if (ageMs <= REPLY_TTL_MS && !(counts && hasRoom(windows, counters, cost)))
      return memory.decide(id, cost, options);
    return shared.consume(id, cost, options);
  };
  const denials = createDenials({ ...createStores('denied'), windowKind: kinds[0] });
  return {
    consume: (subject, cost) => decide(subject, cost, true),
    read: (subject, cost) => decide(subject, cost, false),
    countDenied: denials.count,
    resetDenied: denials.reset,
    isDenied(subject, cost) {
      checkSubject(subject);
      checkCost(cost);
      const { kind, id, limits } = subject;
      const windows = toWindows(kinds, limits);
      return !hasRoom(windows, stores[kind].memory.peek(id, windows).counters, cost);
    },
    get state() {
      if (redis === undefined) return 'memory';
      return redis.isAvailable ? 'redis' : 'degraded';
    },
    async ready(withinMs) {
      if (typeof withinMs !== 'number' || !(withinMs >= 0))
        throw new RangeError(`withinMs must be a number from 0: ${withinMs}`);
      await redis?.ready(withinMs);
    },
    async close() {
      redis?.close();
    },
  };
}
