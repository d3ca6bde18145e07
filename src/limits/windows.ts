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

/** The windows of limits, shorter first. */
export function toWindows({ perMinute, perDay }: Limits): readonly Window[] {
  const minute: Window = { name: 'minute', lengthMs: 60_000, limit: perMinute };
  if (perDay === undefined) return [minute];
  return [minute, { name: 'day', lengthMs: 86_400_000, limit: perDay }];
}

/** Whether every window has room for `cost` further requests. */
export function hasRoom(
  windows: readonly Window[],
  counters: readonly WindowCounter[],
  cost: number,
): boolean {
  return windows.every(({ limit }, index) => (counters[index]?.count ?? 0) + cost <= limit);
}
