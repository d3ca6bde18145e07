import type { Log } from './circuit-breaker.js';
import { isCountable, type WindowKind } from './rate-limit-result.js';
import { checkRedisUrls } from './redis/urls.js';

export interface LimiterOptions<Field extends string = string> {
  /** The windows in which requests are counted, the shortest first. Denials are counted in the first window. */
  readonly windows: readonly [WindowKind<Field>, ...WindowKind<Field>[]];
  /** None: memory. One: Redis or Valkey, or Sentinels. Several: nodes of a cluster. */
  readonly redisUrls: readonly string[];
  /** Reads the URLs again, for later connections. If that fails, the last URLs stay. While Redis is away, the log says why */
  readonly readRedisUrls?: () => readonly string[];
  readonly log: Log;
  /** The prefix of every key in Redis. Limiters with the same prefix share their counts. Default `limits` */
  readonly prefix?: string;
  /** Milliseconds of a clock that cannot be set, by which memory counts; Redis has its own. Default: monotonic */
  readonly clock?: () => number;
  /** Unix milliseconds, for telling callers when a window ends, and nothing else. Default `Date.now` */
  readonly now?: () => number;
  /** Called with the seconds that each command of a request to Redis took */
  readonly observeCommand?: (seconds: number) => void;
  /** How long a command to Redis may take before memory decides, in milliseconds. Default 160 */
  readonly commandTimeoutMs?: number;
  /** For tracing, the name of the diagnostics channels of its batches, as of createBatchLoader */
  readonly channelName?: string;
}

const FUNCTIONS = ['clock', 'now', 'observeCommand', 'readRedisUrls'] as const;
const STRINGS = ['prefix', 'channelName'] as const;

/** @throws TypeError */
export function checkOptions(options: LimiterOptions): void {
  const { windows, redisUrls, log, commandTimeoutMs = 1 } = options;
  checkWindows(windows);
  try {
    checkRedisUrls(redisUrls);
  } catch (error) {
    throw new TypeError(`redisUrls ${(error as Error).message}`);
  }
  if (typeof log?.info !== 'function' || typeof log.warn !== 'function')
    throw new TypeError('log must have the functions info and warn, as console has');
  if (typeof commandTimeoutMs !== 'number' || !(commandTimeoutMs > 0))
    throw new TypeError(`commandTimeoutMs must be a number above 0: ${commandTimeoutMs}`);
  checkTypes(options, FUNCTIONS, 'function');
  checkTypes(options, STRINGS, 'string');
}

function checkTypes(options: LimiterOptions, names: readonly (keyof LimiterOptions)[], type: string): void {
  const wrong = names.find((name) => options[name] !== undefined && typeof options[name] !== type);
  if (wrong !== undefined) throw new TypeError(`${wrong} must be a ${type}: ${typeof options[wrong]}`);
}

/** Names become fields in Redis, and words of a script. */
function checkWindows(kinds: readonly WindowKind[]): void {
  if (!Array.isArray(kinds) || kinds.length === 0)
    throw new TypeError('windows must be an array of at least one window');
  const names = kinds.map(({ name }: WindowKind) => name);
  // Each window has two fields in Redis: see createConsumeScript.
  const fields = new Set(names.flatMap((name) => [name, `${name}Ends`]));
  if (fields.size < 2 * names.length || !names.every((name) => /^[A-Za-z]+$/.test(name ?? '')))
    throw new TypeError(
      `The names of windows must be letters, and must differ, also with Ends after them: ${names.join(', ')}`,
    );
  if (!kinds.every(({ field }: WindowKind) => typeof field === 'string'))
    throw new TypeError('The field of a window is the member of limits that holds its number');
  const lengths = kinds.map(({ lengthMs }: WindowKind) => lengthMs);
  if (!lengths.every((ms, index) => isCountable(ms) && ms > (lengths[index - 1] ?? 0)))
    throw new TypeError(
      `The lengths of windows are whole milliseconds, the shortest first: ${lengths.join(', ')}`,
    );
}
