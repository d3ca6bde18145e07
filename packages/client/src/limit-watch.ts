/** A window of the rate limit as the last answer told of it. */
export interface WindowState {
  /** `minute` or `day` */
  readonly name: string;
  /** Requests that the window admits */
  readonly limit: number;
  /** Requests that it still admits */
  readonly remaining: number;
  readonly windowSeconds: number;
  /** When it ends, in Unix milliseconds of this machine's clock, so that a countdown is right on a clock that is wrong */
  readonly resetAtMs: number;
}

/** Where the caller stood with the last answer: the window that is tighter for it, and all of them. */
export interface LimitState extends WindowState {
  readonly windows: readonly WindowState[];
}

/** The last seen limit state, in the form that React's `useSyncExternalStore` takes. */
export interface LimitWatch {
  /** Undefined before the first answer; a new object with each one */
  readonly current: LimitState | undefined;
  /** Calls the listener after each answer, until the function that it returns is called. */
  readonly subscribe: (listener: () => void) => () => void;
}

/** A watch, and what tells it of an answer. `now` is in Unix milliseconds. */
export function watchLimits(now: () => number): { watch: LimitWatch; note(headers: Headers): void } {
  let current: LimitState | undefined;
  const listeners = new Set<() => void>();
  const watch: LimitWatch = {
    get current() {
      return current;
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  return {
    watch,
    note(headers) {
      const state = readLimits(headers, now());
      if (state === undefined) return;
      current = state;
      for (const listener of listeners) listener();
    },
  };
}

/** Undefined when the answer is not the service's. */
function readLimits(headers: Headers, now: number): LimitState | undefined {
  const policies = readList(headers.get('ratelimit-policy'));
  const windows = [...readList(headers.get('ratelimit'))].map(([name, { r = 0, t = 0 }]) => {
    const { q = 0, w = 0 } = policies.get(name) ?? {};
    return { name, limit: q, remaining: r, windowSeconds: w, resetAtMs: now + t * 1_000 };
  });
  const limit = Number(headers.get('x-ratelimit-limit'));
  const remaining = Number(headers.get('x-ratelimit-remaining'));
  // Of two windows that stand alike the service means the one that ends later, which it names last.
  const tighter = windows.findLast((window) => window.limit === limit && window.remaining === remaining);
  return tighter && { ...tighter, windows };
}

/** Reads `"minute";r=59;t=60, "day";r=999;t=3600`: of structured fields (RFC 9651) as much as the service uses. */
function readList(field: string | null): Map<string, Record<string, number>> {
  const items = (field ?? '').matchAll(/"([^"]*)"((?:;[a-z]+=\d+)*)/g);
  return new Map(
    Array.from(items, ([, name = '', parameters = '']) => [
      name,
      Object.fromEntries(
        Array.from(parameters.matchAll(/([a-z]+)=(\d+)/g), ([, key, value]) => [key, Number(value)]),
      ),
    ]),
  );
}
