import type { MemoryStore } from './memory-store.js';
import {
  type Limits,
  type RateLimitResult,
  readLimit,
  type Window,
  type WindowKind,
} from './rate-limit-result.js';
import { checkCost, checkSubject, type Subject } from './subject.js';

export interface DenialsOptions {
  /** The window in which denials are counted */
  readonly windowKind: WindowKind;
  /** This node's counters of the denials of each key */
  readonly memory: MemoryStore;
  /** The store that counts for several processes; undefined while there is none */
  readonly findShared: () => Pick<MemoryStore, 'consume'> | undefined;
}

/** Counts the denials of keys as requests are counted, in a window that starts with the first denial. */
export function createDenials({ windowKind, memory, findShared }: DenialsOptions) {
  const { name, lengthMs, field } = windowKind;
  /** A window with room for one less than the limit: the denial that reaches the limit is the first to find no room. */
  const toDeniedWindows = (limits: Limits): readonly [Window] => {
    const limit = readLimit(limits, field);
    if (limit === undefined)
      throw new RangeError(`Denials are counted only for subjects that have a limit ${field}`);
    return [{ name, lengthMs, limit: limit - 1 }];
  };
  return {
    /** See Limiter.countDenied */
    count(subject: Subject, cost: number, onLimit: () => unknown): Promise<void> | undefined {
      checkSubject(subject);
      checkCost(cost);
      if (typeof onLimit !== 'function') throw new TypeError(`onLimit must be a function: ${typeof onLimit}`);
      const { id, limits } = subject;
      const options = { windows: toDeniedWindows(limits), counts: true, restarts: true };
      if (cost === 0) return undefined;
      // Awaiting the result includes what onLimit has begun.
      const act = ({ isAllowed }: RateLimitResult) =>
        (isAllowed ? undefined : onLimit()) as Promise<void> | undefined;
      const shared = findShared();
      if (shared !== undefined) return shared.consume(id, cost, options).then(act);
      // Memory decides at once, so no request of this tick comes between a denial and the ban that it leads to.
      return act(memory.decide(id, cost, options));
    },
    /** See Limiter.resetDenied */
    reset(subject: Subject): void {
      checkSubject(subject);
      const { id, limits } = subject;
      const windows = toDeniedWindows(limits);
      const [{ msLeft } = { msLeft: 0 }] = memory.peek(id, windows).counters;
      memory.replace(id, windows, [{ msLeft, count: 0 }]);
    },
  };
}
