import type { Limits } from './rate-limit-result.js';

/**
 * A caller with limits, by an id that is unique among its kind: a key or an account, which is remembered for long, or the
 * address of a caller without one, of which there are many.
 */
export interface Subject<Field extends string = string> {
  readonly kind: 'key' | 'address';
  /** Any text that is not empty */
  readonly id: string;
  readonly limits: Limits<Field>;
}

/*
 * A caller's mistake is an error of that call. Past these checks, it would look like a failure of Redis, and take Redis
 * from all callers.
 */

/** @throws TypeError */
export function checkSubject(subject: Subject): void {
  const { kind, id, limits } = subject ?? {};
  if (kind !== 'key' && kind !== 'address') throw new TypeError(`kind must be 'key' or 'address': ${kind}`);
  if (typeof id !== 'string' || id === '')
    throw new TypeError(`id must be a string that is not empty: ${typeof id} ${id}`);
  if (typeof limits !== 'object' || limits === null)
    throw new TypeError(`limits must be an object, empty for no limit: ${limits}`);
}

/** @throws RangeError */
export function checkCost(cost: number): void {
  if (!Number.isSafeInteger(cost) || cost < 0)
    throw new RangeError(`cost must be a whole number from 0: ${typeof cost} ${cost}`);
}
