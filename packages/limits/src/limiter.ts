import type { Log } from './circuit-breaker.js';
import { createDenials } from './denials.js';
import { MemoryStore } from './memory-store.js';
import {
  hasRoom,
  type Limits,
  type RateLimitResult,
  toWindows,
  type WindowKind,
} from './rate-limit-result.js';

/**
 * A caller with limits, by an id that no other caller of its kind has: a key or an account, which is remembered for long, or
 * the address of somebody who shows none, of which there are many.
 */
export interface Subject<Field extends string = string> {
  readonly kind: 'key' | 'address';
  readonly id: string;
  readonly limits: Limits<Field>;
}

export interface Limiter<Field extends string = string> {
  /**
   * Decides on `cost` requests (1, or the number of calls of a batch) as a whole. Never rejects. Waits for one command
   * to Redis, or two when others are under way; none takes longer than `commandTimeoutMs`, after which memory decides.
   * Returns no promise when memory decides: without Redis, while it is unavailable, and for what is certain to be denied.
   */
  consume(subject: Subject<Field>, cost: number): RateLimitResult | Promise<RateLimitResult>;
  /** What `consume` would decide, by counts that may be REPLY_TTL_MS old. Counts nothing; never rejects. */
  read(subject: Subject<Field>, cost: number): RateLimitResult | Promise<RateLimitResult>;
  /**
   * Counts a denied request by its cost. When as many requests of the subject were denied within the first window as it
   * allows, it calls `onLimit` and counts from 0 again. With Redis, the denials of all nodes count; without Redis, and
   * while it is away, only those of this node. @throws RangeError for a subject without a limit in the first window
   */
  countDenied(subject: Subject<Field>, cost: number, onLimit: () => void): Promise<void> | undefined;
  /** Counts the denied requests of a subject from 0: for one whose limit another node has found to be reached. */
  resetDenied(subject: Subject<Field>): void;
  /** Whether the last known counters leave no room for `cost` requests. Asks nobody. */
  isDenied(subject: Subject<Field>, cost: number): boolean;
  /** Who decides; `degraded` while memory does in place of Redis */
  readonly state: 'memory' | 'redis' | 'degraded';
  /** Resolves when the configured store decides. @throws Error when Redis does not after `withinMs` */
  ready(withinMs: number): Promise<void>;
  /** Ends the connection to Redis. A closed limiter decides from memory. */
  close(): Promise<void>;
}

export interface LimiterOptions<Field extends string = string> {
  /** In which requests are counted, the shortest first. Denials are counted in the first. */
  readonly windows: readonly [WindowKind<Field>, ...WindowKind<Field>[]];
  /** None: memory. One: Redis or Valkey, or Sentinels. Several: nodes of a cluster. */
  readonly redisUrls: readonly string[];
  /** Reads the URLs again, for connections that are made later */
  readonly readRedisUrls?: () => readonly string[];
  readonly log: Log;
  /** The prefix of every key in Redis. Default `limits` */
  readonly prefix?: string;
  /** Milliseconds of a clock that cannot be set, by which memory counts; Redis has its own. Default: monotonic */
  readonly clock?: () => number;
  /** Unix milliseconds, for telling callers when a window ends, and nothing else. Default `Date.now` */
  readonly now?: () => number;
  /** Called with what each command of a request to Redis took, in seconds */
  readonly observeCommand?: (seconds: number) => void;
  /** How long a command to Redis may take before memory decides, in milliseconds. Default 160 */
  readonly commandTimeoutMs?: number;
  /** For tracing, the name of the diagnostics channels of its batches, as of createBatchLoader */
  readonly channelName?: string;
}

/**
 * How many subjects of each kind one process remembers, which takes about 55 MB when all are full. Beyond that, the
 * least recently seen is forgotten: its counts are lost if memory decides, but not if Redis does. What a key is denied is a
 * subject of its own.
 */
export const MAX_SUBJECTS = { key: 100_000, address: 50_000, denied: 50_000 } as const;

/** How long a denial of Redis is repeated without asking: after it, the numbers that callers get would be too old. */
const REPLY_TTL_MS = 1_000;

/** Longer than a pause of either side, such as a garbage collection, and short beside what callers wait for. */
const COMMAND_TIMEOUT_MS = 160;

/**
 * A limiter over memory alone, or over Redis, which decides as long as it can; while it cannot, memory does. Memory holds
 * the counters of Redis' last reply, so that it can continue from there, and can deny without asking where the result is
 * certain. When Redis is back, or has lost its counters, it continues from those of memory.
 *
 * Redis connects later, and its client is loaded only if it is used.
 *
 * @throws TypeError for windows that cannot be counted in
 */
export async function createLimiter<Field extends string>({
  windows: kinds,
  redisUrls,
  readRedisUrls = () => redisUrls,
  log,
  prefix = 'limits',
  clock = () => Math.floor(performance.now()),
  now = Date.now,
  observeCommand = () => {},
  commandTimeoutMs = COMMAND_TIMEOUT_MS,
  channelName = 'limits.batch',
}: LimiterOptions<Field>): Promise<Limiter<Field>> {
  checkWindows(kinds);
  const { openRedis } = redisUrls.length > 0 ? await import('./redis/store.js') : {};
  const redis = openRedis?.({
    names: kinds.map(({ name }) => name),
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
  const decide = ({ kind, id, limits }: Subject<Field>, cost: number, counts: boolean) => {
    const { memory, findShared } = stores[kind];
    const shared = findShared();
    const windows = toWindows(kinds, limits);
    const options = { windows, counts };
    if (shared === undefined) return memory.decide(id, cost, options);
    const { counters, ageMs } = memory.peek(id, windows);
    // Counters only grow until their window ends: what they deny now, Redis would deny too.
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
    isDenied({ kind, id, limits }, cost) {
      const windows = toWindows(kinds, limits);
      return !hasRoom(windows, stores[kind].memory.peek(id, windows).counters, cost);
    },
    get state() {
      if (redis === undefined) return 'memory';
      return redis.isAvailable ? 'redis' : 'degraded';
    },
    async ready(withinMs) {
      await redis?.ready(withinMs);
    },
    async close() {
      redis?.close();
    },
  };
}

/** Names become fields in Redis, and words of a script. */
function checkWindows(kinds: readonly WindowKind[]): void {
  const names = kinds.map(({ name }) => name);
  if (new Set(names).size < names.length || !names.every((name) => /^[A-Za-z]+$/.test(name)))
    throw new TypeError(`The names of windows are letters, each another: ${names.join(', ')}`);
  const lengths = kinds.map(({ lengthMs }) => lengthMs);
  if (!lengths.every((ms, index) => Number.isSafeInteger(ms) && ms > (lengths[index - 1] ?? 0)))
    throw new TypeError(
      `The lengths of windows are whole milliseconds, the shortest first: ${lengths.join(', ')}`,
    );
}
