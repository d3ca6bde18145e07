/** One window of the rate limit, as of the latest response. */
export interface WindowStatus {
  /** Such as `minute` or `day` */
  readonly name: string;
  /** How many requests the window allows */
  readonly limit: number;
  /** How many more it still allows */
  readonly remaining: number;
  /** How long the window is */
  readonly windowSeconds: number;
  /**
   * When the window ends, in Unix milliseconds of the local clock, so that countdowns work even if that clock is wrong
   */
  readonly resetAtMs: number;
}

/** The window that is binding for the caller, and all windows. */
export interface LimitStatus extends WindowStatus {
  /** All windows, such as `minute` and `day` */
  readonly windows: readonly WindowStatus[];
}

/** The latest limit status of the key, in the form that React's `useSyncExternalStore` takes. */
export interface LimitWatch {
  /** Undefined before the first response; a new object with each response */
  readonly current: LimitStatus | undefined;
  /** Calls the listener after each response, until the returned function is called. */
  readonly subscribe: (listener: () => void) => () => void;
}

/** Creates a watch, and the function that updates it from a response. `now` is in Unix milliseconds. */
export function createLimitWatch(now: () => number): { limits: LimitWatch; update(headers: Headers): void } {
  let current: LimitStatus | undefined;
  const listeners = new Set<() => void>();
  const limits: LimitWatch = {
    get current() {
      return current;
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  return {
    limits,
    update(headers) {
      const status = readLimits(headers, now());
      if (status === undefined) return;
      current = status;
      for (const listener of listeners) listener();
    },
  };
}

/** Undefined when the response does not come from the service. */
function readLimits(headers: Headers, now: number): LimitStatus | undefined {
  const policies = parseList(headers.get('ratelimit-policy'));
  const windows = [...parseList(headers.get('ratelimit'))].map(([name, { r = 0, t = 0 }]) => {
    const { q = 0, w = 0 } = policies.get(name) ?? {};
    return { name, limit: q, remaining: r, windowSeconds: w, resetAtMs: now + t * 1_000 };
  });
  const limit = Number(headers.get('x-ratelimit-limit'));
  const remaining = Number(headers.get('x-ratelimit-remaining'));
  // If several windows have the same numbers, the service means the one that ends later, which it lists last.
  const binding = windows.findLast((window) => window.limit === limit && window.remaining === remaining);
  return binding && { ...binding, windows };
}

/** Parses `"minute";r=59;t=60, "day";r=999;t=3600`: the part of structured fields (RFC 9651) that the service uses. */
function parseList(value: string | null): Map<string, Record<string, number>> {
  const items = (value ?? '').matchAll(/"([^"]*)"((?:;[a-z]+=\d+)*)/g);
  return new Map(
    Array.from(items, ([, name = '', parameters = '']) => [
      name,
      Object.fromEntries(
        Array.from(parameters.matchAll(/([a-z]+)=(\d+)/g), ([, key, number]) => [key, Number(number)]),
      ),
    ]),
  );
}
