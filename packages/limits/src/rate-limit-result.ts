import { RateLimiterRes } from 'rate-limiter-flexible';

/** One of the windows in which a limiter counts, such as `{ name: 'minute', lengthMs: 60_000, field: 'perMinute' }`. */
export interface WindowKind<Field extends string = string> {
  /** The name in results, and in Redis */
  readonly name: string;
  readonly lengthMs: number;
  /** The member of a subject's limits that says how many requests fit into the window */
  readonly field: Field;
}

/**
 * How many requests fit into each window, a whole number from 0. A window does not limit a subject whose limit is undefined,
 * null, Infinity, or 10^14 or more.
 */
export type Limits<Field extends string = string> = { readonly [Key in Field]?: number | null | undefined };

/** A fixed window. It starts with the first request that is allowed after the previous one has ended. */
export interface Window {
  readonly name: string;
  readonly lengthMs: number;
  /** Requests that the window allows */
  readonly limit: number;
}

/** The counter of one window in a store. Times are relative, so that the clocks of two machines are never compared. */
export interface WindowCounter {
  /** Requests counted; 0 before the window has started */
  readonly count: number;
  /** Milliseconds until the window ends; 0 before it has started */
  readonly msLeft: number;
}

/** How a store counts a request. Stores hold counters only: the windows, with the current limits, come with each call. */
export interface ConsumeOptions {
  readonly windows: readonly Window[];
  /** Whether to count the request, or only to decide on it */
  readonly counts: boolean;
  /**
   * Whether windows without room for the request count from 0 again, until they end: the result tells one caller that they
   * were full. Default false
   */
  readonly restarts?: boolean;
}

/** The windows of limits, shorter first. */
export function toWindows<Field extends string>(
  kinds: readonly WindowKind<Field>[],
  limits: Limits<Field>,
): readonly Window[] {
  const windows: Window[] = [];
  // This runs several times a request, and flatMap would take a microsecond more.
  for (const { name, lengthMs, field } of kinds) {
    const limit = readLimit(limits, field);
    if (limit !== undefined) windows.push({ name, lengthMs, limit });
  }
  return windows;
}

/** Redis' replies have 14 digits: greater counts, or times, would come back rounded. */
const COUNTABLE_BELOW = 1e14;

/** Whether a number is one that memory, the script and its replies hold exactly. */
export function isCountable(number: number): boolean {
  return Number.isInteger(number) && number >= 0 && number < COUNTABLE_BELOW;
}

/** The limit of a window, undefined for none. @throws TypeError, RangeError */
export function readLimit(limits: Limits, field: string): number | undefined {
  const limit = limits[field];
  if (limit === undefined || limit === null) return undefined;
  if (typeof limit !== 'number' || Number.isNaN(limit))
    throw new TypeError(`${field} must be a number, or left out: ${typeof limit} ${limit}`);
  if (limit >= COUNTABLE_BELOW) return undefined;
  if (!isCountable(limit)) throw new RangeError(`${field} must be a whole number from 0: ${limit}`);
  return limit;
}

/** Whether every window has room for `cost` further requests. */
export function hasRoom(
  windows: readonly Window[],
  counters: readonly WindowCounter[],
  cost: number,
): boolean {
  return windows.every(({ limit }, index) => (counters[index]?.count ?? 0) + cost <= limit);
}

/** One window as its subject sees it after a decision. */
export interface LimitStatus {
  readonly name: string;
  /** Requests that the window allows */
  readonly limit: number;
  /** Requests that it still allows */
  readonly remaining: number;
  readonly windowSeconds: number;
  /** When the window ends, in Unix milliseconds, for callers only; for a window that has not started, if it started now */
  readonly resetAtMs: number;
  /** Whole seconds until then, rounded up, at least 1 */
  readonly resetSeconds: number;
}

/** In place of the binding window, for a subject that no window limits */
const UNLIMITED: LimitStatus = {
  name: 'none',
  limit: Number.POSITIVE_INFINITY,
  remaining: Number.POSITIVE_INFINITY,
  windowSeconds: 0,
  resetAtMs: 0,
  resetSeconds: 1,
};

/** A decision: the library's result, whose points are the binding window's, with the status of every window. */
export class RateLimitResult extends RateLimiterRes {
  readonly isAllowed: boolean;
  readonly windows: readonly LimitStatus[];
  /**
   * The window that denied the request (the one that ends last if several did), else the one with the fewest requests left.
   * Without any window it is `none`, whose limit is Infinity
   */
  readonly binding: LimitStatus;
  /** Whole seconds, at least 1, after which the same request is allowed; undefined when it is allowed now */
  readonly retryAfterSeconds: number | undefined;

  /**
   * @param counters in the order of `windows`, after the request was counted if it was allowed
   * @param nowMs the moment of the decision, in Unix milliseconds
   */
  constructor(
    windows: readonly Window[],
    counters: readonly WindowCounter[],
    { isAllowed, cost, nowMs }: { isAllowed: boolean; cost: number; nowMs: number },
  ) {
    const statuses = windows.map((window, index) => toStatus(window, counters[index], nowMs));
    const denying = isAllowed ? [] : statuses.filter(({ remaining }) => remaining < cost);
    const sorted = denying.length > 0 ? denying.toSorted(endsLater) : statuses.toSorted(hasFewerLeft);
    const [binding = { ...UNLIMITED, resetAtMs: nowMs }] = sorted;
    const retryAfterSeconds = isAllowed ? undefined : binding.resetSeconds;
    super(
      binding.remaining,
      (retryAfterSeconds ?? 0) * 1000,
      sorted.length > 0 ? binding.limit - binding.remaining : 0,
    );
    this.isAllowed = isAllowed;
    this.windows = statuses;
    this.binding = binding;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

function toStatus(window: Window, counter: WindowCounter | undefined, nowMs: number): LimitStatus {
  const msLeft = counter?.msLeft || window.lengthMs;
  return {
    name: window.name,
    limit: window.limit,
    remaining: Math.max(0, window.limit - (counter?.count ?? 0)),
    windowSeconds: window.lengthMs / 1000,
    resetAtMs: nowMs + msLeft,
    resetSeconds: Math.ceil(msLeft / 1000),
  };
}

function endsLater(a: LimitStatus, b: LimitStatus): number {
  return b.resetAtMs - a.resetAtMs;
}

function hasFewerLeft(a: LimitStatus, b: LimitStatus): number {
  return a.remaining - b.remaining || endsLater(a, b);
}
