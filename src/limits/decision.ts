import type { Reading, Window } from './windows.js';

/** One window as the caller sees it after the decision. */
export interface WindowState {
  name: Window['name'];
  /** Requests that the window admits. */
  limit: number;
  /** Requests that it still admits. */
  remaining: number;
  windowSeconds: number;
  /** When it ends, in Unix milliseconds of this node's clock; for one that has not started, if it started now. */
  resetAtMs: number;
  /** Whole seconds until then, rounded up, at least 1. */
  resetSeconds: number;
}

/** The answer to one request, or to a batch as a whole. */
export interface Decision {
  admitted: boolean;
  code: null | 'rate_limit_exceeded' | 'api_key_banned';
  /** The minute and, where it is counted, the day. */
  windows: WindowState[];
  /** The window that refused (the one that ends last if both did); otherwise the one with the fewest requests left. */
  tighter: WindowState;
  /** Null when admitted. Otherwise whole seconds, at least 1, after which the same request is admitted. */
  retryAfterSeconds: number | null;
}

/** Words a store's reading for the caller. `nowMs` is the moment of the reading in Unix milliseconds. */
export function decisionOf(windows: Window[], reading: Reading, cost: number, nowMs: number): Decision {
  const states = windows.map((window, index) => stateOf(window, reading.windows[index], nowMs));
  const banned = reading.banLeftMs > 0;
  const refusing = reading.admitted ? [] : states.filter((state) => state.remaining < cost);
  const tighter = refusing.length > 0 ? firstBy(laterFirst, refusing) : firstBy(fewerFirst, states);
  if (reading.admitted) {
    return { admitted: true, code: null, windows: states, tighter, retryAfterSeconds: null };
  }
  // A ban may end before the window that would then refuse: whoever waits is to be admitted.
  const waits = [...refusing.map((state) => state.resetSeconds), Math.ceil(reading.banLeftMs / 1000), 1];
  const code = banned ? 'api_key_banned' : 'rate_limit_exceeded';
  return { admitted: false, code, windows: states, tighter, retryAfterSeconds: Math.max(...waits) };
}

/** A window's state at `nowMs`, from what a store found of it. */
export function stateOf(
  window: Window,
  taken: Reading['windows'][number] | undefined,
  nowMs: number,
): WindowState {
  const leftMs = taken?.leftMs || window.lengthMs;
  return {
    name: window.name,
    limit: window.limit,
    remaining: Math.max(0, window.limit - (taken?.count ?? 0)),
    windowSeconds: window.lengthMs / 1000,
    resetAtMs: nowMs + leftMs,
    resetSeconds: Math.ceil(leftMs / 1000),
  };
}

/** What would stand first if they were sorted. */
function firstBy(order: (a: WindowState, b: WindowState) => number, states: WindowState[]): WindowState {
  return states.reduce((first, state) => (order(state, first) < 0 ? state : first));
}

function laterFirst(a: WindowState, b: WindowState): number {
  return b.resetAtMs - a.resetAtMs;
}

function fewerFirst(a: WindowState, b: WindowState): number {
  return a.remaining - b.remaining || laterFirst(a, b);
}
