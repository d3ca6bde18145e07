import { Deadlines } from '../deadlines.js';

/** The database did not do in time what one call asked of it; the call may still come about. */
export class DatabaseTimeout extends Error {
  override readonly name = 'DatabaseTimeout';
}

/** How long the key's look-up and then the operation may take: with the limiter's 160 they keep a 503 under 3 s. */
export const LOOKUP_BOUND_MS = 1_200;
export const OPERATION_BOUND_MS = 1_500;

/** How often is looked for what is late, in milliseconds */
const TURN_MS = 50;

/**
 * The same functions, whose promises reject with DatabaseTimeout when they have not settled after so many milliseconds.
 * A call may be several queries, each of them within its own bound: only this bounds their sum.
 */
export function answerWithin<T extends object>(milliseconds: number, calls: T): T {
  const late = () => lateAfter(milliseconds);
  const deadlines = new Deadlines({ turnMs: TURN_MS, turns: milliseconds / TURN_MS, late });
  const bound = Object.entries(calls).map(([name, call]) => [
    name,
    (...values: unknown[]) => {
      const answer: unknown = call(...values);
      return answer instanceof Promise ? deadlines.bound(answer) : answer;
    },
  ]);
  return Object.fromEntries(bound);
}

function lateAfter(milliseconds: number): DatabaseTimeout {
  return new DatabaseTimeout(`The database did not answer within ${milliseconds} ms`);
}

/** What the answer is or, after so many milliseconds, a rejection with DatabaseTimeout. */
export async function settleWithin<T>(milliseconds: number, answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(lateAfter(milliseconds)), milliseconds);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
