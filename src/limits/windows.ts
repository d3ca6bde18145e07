import type { Limits } from './plans.js';

/** A fixed window: it starts with the first request that it admits after the one before has ended. */
export interface Window {
  name: 'minute' | 'day';
  lengthMs: number;
  limit: number;
}

const known = new WeakMap<Limits, Window[]>();

/** The windows that given limits make, the shorter first: the same array for the same object. */
export function windowsOf(limits: Limits): Window[] {
  const windows = known.get(limits) ?? makeWindows(limits);
  known.set(limits, windows);
  return windows;
}

function makeWindows({ perMinute, perDay }: Limits): Window[] {
  const minute: Window = { name: 'minute', lengthMs: 60_000, limit: perMinute };
  return perDay === null ? [minute] : [minute, { name: 'day', lengthMs: 86_400_000, limit: perDay }];
}

/**
 * What a store finds for one subject, after the request was counted if it was admitted.
 *
 * Every time is relative to the moment of the reading, so that a reading means the same on every clock.
 */
export interface Reading {
  admitted: boolean;
  /** Time until the last ban ends; zero or negative once it has ended. */
  banLeftMs: number;
  /** Length of the last ban; 0 when there is none to remember. */
  banLengthMs: number;
  /** How often an operator has lifted a ban: a change tells a node to forget the refusals it has counted. */
  pardons: number;
  /** In the order of the windows asked for. `leftMs` is 0 for a window that has not started, and `count` then too. */
  windows: { count: number; leftMs: number }[];
}
