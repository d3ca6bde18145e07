import { type RateLimiterAbstract, RateLimiterRes } from 'rate-limiter-flexible';
import type { Reading, Window } from './windows.js';

/** What the limiters here take as the library's options of `consume`: the windows that hold for this request. */
export interface TakeOptions {
  windows: Window[];
}

/**
 * A reading in the shape that rate-limiter-flexible resolves (admitted) and rejects (refused) with.
 *
 * The library compares the points consumed with one limit; with several windows there is no such number. So its
 * limit is 0 here, and what a request consumes of it is 0 when every window admits it and its cost when one does not.
 */
export class Verdict extends RateLimiterRes {
  readonly reading: Reading;

  constructor(reading: Reading, cost: number) {
    super(0, 0, reading.admitted ? 0 : cost);
    this.reading = reading;
  }
}

/** The key of a subject in a store. The id is a hash tag: all that a cluster keeps for a subject is in one slot. */
export function taggedKey(keyPrefix: string, id: string): string {
  return `${keyPrefix}:{${id}}`;
}

/** Asks a limiter of the library for the reading, whether it resolves or refuses. Rejects when it failed. */
export async function readFrom(limiter: RateLimiterAbstract, id: string, windows: Window[], cost: number) {
  const options: TakeOptions = { windows };
  try {
    return readingIn(await limiter.consume(id, cost, options));
  } catch (refusal) {
    return readingIn(refusal);
  }
}

function readingIn(verdict: unknown): Reading {
  if (verdict instanceof Verdict) return verdict.reading;
  throw verdict;
}
