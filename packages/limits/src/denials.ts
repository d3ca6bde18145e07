import type { MemoryStore } from './memory-store.js';
import type { Limits, RateLimitResult, Window, WindowKind } from './rate-limit-result.js';

/** The key that is denied something, with its limits */
interface DeniedKey {
  readonly id: string;
  readonly limits: Limits;
}

export interface DenialsOptions {
  /** The window in which denials are counted */
  readonly windowKind: WindowKind;
  /** This node's counters of the denials of each key */
  readonly memory: MemoryStore;
  /** The store that counts for several processes; undefined while there is none */
  readonly findShared: () => Pick<MemoryStore, 'consume'> | undefined;
}

/** Counts what keys are denied as requests are counted: in a window that starts with the first denial. */
export function createDenials({ windowKind, memory, findShared }: DenialsOptions) {
  const { name, lengthMs, field } = windowKind;
  /** A window with room for one less than the limit: the denial that reaches the limit is the first to find no room. */
  const toDeniedWindows = (limits: Limits): readonly [Window] => {
    const limit = limits[field];
    if (limit === undefined) throw new RangeError(`Denials are counted for whoever has a limit ${field}`);
    return [{ name, lengthMs, limit: limit - 1 }];
  };
  return {
    /** See Limiter.countDenied */
    count({ id, limits }: DeniedKey, cost: number, onLimit: () => void): Promise<void> | undefined {
      const options = { windows: toDeniedWindows(limits), counts: true, restarts: true };
      const act = ({ isAllowed }: RateLimitResult) => {
        if (!isAllowed) onLimit();
      };
      const shared = findShared();
      if (shared !== undefined) return shared.consume(id, cost, options).then(act);
      // Memory decides at once, so no request of this tick comes between a denial and the ban that it leads to.
      act(memory.decide(id, cost, options));
      return undefined;
    },
    /** See Limiter.resetDenied */
    reset({ id, limits }: DeniedKey): void {
      const windows = toDeniedWindows(limits);
      const [{ msLeft } = { msLeft: 0 }] = memory.peek(id, windows).counters;
      memory.replace(id, windows, [{ msLeft, count: 0 }]);
    },
  };
}
