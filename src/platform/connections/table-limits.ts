import pLimit, { type LimitFunction } from 'p-limit';
import { CONNECT_TIMEOUT_MS, TimeoutError } from '../timing/timeouts.js';

/**
 * Returns a function that runs at most `max` statements on one table at once. While somebody keeps a table locked, the other
 * connections of the pool are left to statements on other tables. A statement that has waited longer than it would for a
 * connection is rejected, and never sent.
 */
export function limitByTable(max: number) {
  const limits = new Map<string, LimitFunction>();
  return <Result>(table: string | undefined, run: () => Promise<Result>): Promise<Result> => {
    if (table === undefined) return run();
    const limit = limits.get(table) ?? pLimit(max);
    limits.set(table, limit);
    const since = performance.now();
    return limit(() => {
      if (performance.now() - since > CONNECT_TIMEOUT_MS)
        throw new TimeoutError(`Other statements on ${table} took longer than ${CONNECT_TIMEOUT_MS} ms`);
      return run();
    });
  };
}
