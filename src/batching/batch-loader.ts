import { TimeoutError } from './timeouts.js';

export interface BatchOptions {
  /** The most calls in a batch. Default: no limit */
  readonly maxSize?: number;
  /** The most batches that run at once. Default 2, so that one is under way while the results of the other are used */
  readonly maxConcurrent?: number;
  /** Divides what waits evenly among the batches that can start, instead of filling the first. Default false */
  readonly splitsEvenly?: boolean;
  /** A call that waited longer is rejected with a TimeoutError instead of sent. Default: no limit */
  readonly maxWaitMs?: number;
}

/** After this many batches of one call each there is no load, and waiting for a second call would only cost time. */
const SINGLES_WITHOUT_LOAD = 8;

interface Waiting<Call, Result> {
  readonly call: Call;
  /** By performance.now() */
  readonly since: number;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Merges calls into batches. While fewer than `maxConcurrent` run, the calls of one event-loop tick are sent at its end.
 * Otherwise they wait for the end of a batch: the more there is to do, the larger the batches. Without load, when each
 * call ended before the next was made, a call is sent at once.
 *
 * `run` resolves with a result for each call, in their order; an Error rejects that call alone.
 */
export function createBatchLoader<Call, Result>(
  run: (calls: readonly Call[]) => Promise<readonly (Result | Error)[]>,
  {
    maxSize = Number.POSITIVE_INFINITY,
    maxConcurrent = 2,
    splitsEvenly = false,
    maxWaitMs = Number.POSITIVE_INFINITY,
  }: BatchOptions = {},
): { load(call: Call): Promise<Result> } {
  let waiting: Waiting<Call, Result>[] = [];
  let running = 0;
  let isScheduled = false;
  /** How many batches in a row held one call, each of which ended before the next call was made */
  let singlesInARow = 0;
  const sendNext = () => {
    isScheduled = false;
    while (waiting.length > 0 && running < maxConcurrent) {
      const share = splitsEvenly ? Math.ceil(waiting.length / (maxConcurrent - running)) : waiting.length;
      const batch = waiting.slice(0, Math.min(share, maxSize));
      waiting = waiting.slice(batch.length);
      void send(batch);
    }
  };
  const send = async (batch: readonly Waiting<Call, Result>[]) => {
    const sendable = rejectLate(batch, maxWaitMs);
    if (sendable.length === 0) return;
    running += 1;
    singlesInARow = sendable.length === 1 && running === 1 ? singlesInARow + 1 : 0;
    const calls = sendable.map(({ call }) => call);
    const results = await run(calls).catch((error: Error) => calls.map(() => error));
    running -= 1;
    // Before the results are used, which may take long when they are many.
    sendNext();
    for (const [index, { resolve, reject }] of sendable.entries()) {
      const result = results[index] as Result | Error;
      if (result instanceof Error) reject(result);
      else resolve(result);
    }
  };
  const schedule = () => {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(sendNext);
  };
  return {
    load: (call) =>
      new Promise((resolve, reject) => {
        waiting.push({ call, since: performance.now(), resolve, reject });
        if (running > 0) singlesInARow = 0;
        if (singlesInARow >= SINGLES_WITHOUT_LOAD) sendNext();
        else if (running < maxConcurrent) schedule();
      }),
  };
}

/** Rejects the calls that waited too long, and returns the others. */
function rejectLate<Call, Result>(
  batch: readonly Waiting<Call, Result>[],
  maxWaitMs: number,
): readonly Waiting<Call, Result>[] {
  const sendableFrom = performance.now() - maxWaitMs;
  return batch.filter(({ since, reject }) => {
    const isLate = since <= sendableFrom;
    if (isLate) reject(new TimeoutError(`Not sent within ${maxWaitMs} ms`));
    return !isLate;
  });
}
