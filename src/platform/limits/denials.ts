import { type Limits, WINDOWS } from '#store/plans.js';
import type { MemoryStore } from './memory-store.js';
import type { RateLimitResult, Window, WindowCounter } from './rate-limit-result.js';

/** For how long denials are gathered: a caller in a loop costs Redis one call a second for them. */
const GATHER_MS = 1_000;

/** The key that is denied something, with its limits */
interface DeniedKey {
  readonly id: string;
  readonly limits: Limits;
}

export interface DenialsOptions {
  /** This node's counters of the denials of each key */
  readonly memory: MemoryStore;
  /** The store that counts for several processes; undefined while there is none */
  readonly findShared: () => Pick<MemoryStore, 'consume'> | undefined;
}

/** The denials of a key that are not counted yet */
interface Gathered {
  readonly id: string;
  windows: readonly [Window];
  cost: number;
  onLimit: () => void;
}

/**
 * Counts what keys are denied as requests are counted: in a window of a minute, which starts with the first denial. Those
 * that start a window, and those that reach the limit by what this node knows, are counted at once; the others are gathered.
 */
export function createDenials({ memory, findShared }: DenialsOptions) {
  const gathered = new Map<string, Gathered>();
  /** By key, the command that is under way. Its result is not known yet, so further denials wait for its reply. */
  const running = new Map<string, Promise<void>>();
  let timer: NodeJS.Timeout | undefined;
  const peek = ({ id, windows }: Pick<Gathered, 'id' | 'windows'>) =>
    memory.peek(id, windows).counters[0] as WindowCounter;
  const count = ({ id, windows, cost, onLimit }: Gathered): Promise<void> | undefined => {
    gathered.delete(id);
    const options = { windows, counts: true, restarts: true };
    const act = ({ isAllowed }: RateLimitResult) => {
      running.delete(id);
      if (!isAllowed) onLimit();
    };
    const question = findShared()?.consume(id, cost, options).then(act);
    // Memory decides at once, so no request of this tick comes between a denial and the ban that it leads to.
    if (question === undefined) act(memory.decide(id, cost, options));
    else running.set(id, question);
    return question;
  };
  const countGathered = () => {
    timer = undefined;
    // Denials of a window that has ended would count as if they belonged to the next.
    for (const each of gathered.values()) if (peek(each).msLeft > 0) void count(each);
    gathered.clear();
  };
  const gather = (key: DeniedKey, cost: number, onLimit: () => void): Promise<void> | undefined => {
    const { id, limits } = key;
    const question = running.get(id);
    if (question !== undefined) return question.then(() => gather(key, cost, onLimit));
    const each = gathered.get(id) ?? { id, windows: toDeniedWindows(limits), cost: 0, onLimit };
    if (each.windows[0].limit !== limits.perMinute - 1) each.windows = toDeniedWindows(limits);
    const known = peek(each);
    each.cost = known.msLeft > 0 ? each.cost + cost : cost;
    each.onLimit = onLimit;
    const isLimit = known.count + each.cost >= limits.perMinute;
    if (isLimit || known.msLeft === 0) return count(each);
    gathered.set(id, each);
    timer ??= setTimeout(countGathered, GATHER_MS).unref();
    return undefined;
  };
  return {
    /** See Limiter.countDenied */
    count: gather,
    /** See Limiter.resetDenied */
    reset({ id, limits }: DeniedKey): void {
      gathered.delete(id);
      const windows = toDeniedWindows(limits);
      memory.replace(id, windows, [{ ...peek({ id, windows }), count: 0 }]);
    },
    close: () => clearTimeout(timer),
  };
}

/** A window with room for one less than the limit: the denial that reaches the limit is the first to find no room. */
function toDeniedWindows({ perMinute }: Limits): readonly [Window] {
  const [{ name, lengthMs }] = WINDOWS;
  return [{ name, lengthMs, limit: perMinute - 1 }];
}
