import type { Limits } from '../contract/plans.js';

/** A fixed window. It starts with the first request that is allowed after the previous one has ended. */
export interface Window {
  readonly name: 'minute' | 'day';
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

const knownWindows = new WeakMap<Limits, readonly Window[]>();

/** The windows of limits, shorter first. The same object always gives the same array, by which requests are grouped. */
export function toWindows(limits: Limits): readonly Window[] {
  const known = knownWindows.get(limits);
  if (known !== undefined) return known;
  const { perMinute, perDay } = limits;
  const windows: Window[] = [{ name: 'minute', lengthMs: 60_000, limit: perMinute }];
  if (perDay !== undefined) windows.push({ name: 'day', lengthMs: 86_400_000, limit: perDay });
  knownWindows.set(limits, windows);
  return windows;
}

/** Whether every window has room for `cost` further requests. */
export function hasRoom(
  windows: readonly Window[],
  counters: readonly WindowCounter[],
  cost: number,
): boolean {
  return windows.every(({ limit }, index) => (counters[index]?.count ?? 0) + cost <= limit);
}
