/** The database did not do in time what one call asked of it; the call may still come about. */
export class DatabaseTimeout extends Error {
  override readonly name = 'DatabaseTimeout';
}

/** How long the key's look-up and then the operation may take: with the limiter's 160 they keep a 503 under 3 s. */
export const LOOKUP_BOUND_MS = 1_200;
export const OPERATION_BOUND_MS = 1_500;

/**
 * The same object, whose methods reject with DatabaseTimeout when they have not settled after so many milliseconds. A
 * call may be several queries, each of them within its own bound: only this bounds their sum.
 */
export function answerWithin<T extends object>(milliseconds: number, calls: T): T {
  return new Proxy(calls, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return (...values: unknown[]) => {
        const answer: unknown = Reflect.apply(member, target, values);
        return answer instanceof Promise ? settleWithin(milliseconds, answer) : answer;
      };
    },
  });
}

/** What the answer is or, after so many milliseconds, a rejection with DatabaseTimeout. */
export async function settleWithin<T>(milliseconds: number, answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const fail = () => reject(new DatabaseTimeout(`The database did not answer within ${milliseconds} ms`));
    timer = setTimeout(fail, milliseconds);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
