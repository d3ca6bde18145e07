import { RateLimiterRes } from 'rate-limiter-flexible';
import type { Window, WindowCounter } from './windows.js';

/** One window as its subject sees it after a decision. */
export interface LimitStatus {
  readonly name: Window['name'];
  /** Requests that the window allows */
  readonly limit: number;
  /** Requests that it still allows */
  readonly remaining: number;
  readonly windowSeconds: number;
  /** When it ends, in Unix milliseconds, for callers only; for a window that has not started, if it started now */
  readonly resetAtMs: number;
  /** Whole seconds until then, rounded up, at least 1 */
  readonly resetSeconds: number;
}

/**
 * The decision on one request, or on a batch as a whole: rate-limiter-flexible's result, whose points are those of the
 * binding window, with the status of every window.
 */
export class RateLimitResult extends RateLimiterRes {
  readonly isAllowed: boolean;
  readonly windows: readonly LimitStatus[];
  /**
   * The window that denied the request (the one that ends last if both did), else the one with the fewest requests left
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
    const [binding] = sorted as [LimitStatus];
    const retryAfterSeconds = isAllowed ? undefined : binding.resetSeconds;
    super(binding.remaining, (retryAfterSeconds ?? 0) * 1000, binding.limit - binding.remaining);
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
