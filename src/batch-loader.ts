import DataLoader from 'dataloader';
import { TimeoutError } from './timeouts.js';

export interface BatchOptions {
  /** The most calls in a batch. Default: no limit */
  readonly maxSize?: number;
  /** The most batches that run at once. Default 1 */
  readonly maxConcurrent?: number;
  /** A call that waited longer is rejected with a TimeoutError instead of sent. Default: no limit */
  readonly maxWaitMs?: number;
}

interface Arrival<Call> {
  readonly call: Call;
  /** By performance.now() */
  readonly at: number;
}

/**
 * Merges calls into batches. While fewer than `maxConcurrent` run, a call is sent without delay, together with those made
 * in the same callback of the event loop. Otherwise it waits for the end of one, and so do all that follow: the more
 * there is to do, the larger the batches.
 */
export function createBatchLoader<Call, Result>(
  run: (calls: readonly Call[]) => Promise<(Result | Error)[]>,
  {
    maxSize = Number.POSITIVE_INFINITY,
    maxConcurrent = 1,
    maxWaitMs = Number.POSITIVE_INFINITY,
  }: BatchOptions = {},
): { load(call: Call): Promise<Result> } {
  /** Batches that are scheduled or running */
  let active = 0;
  const waiting: (() => void)[] = [];
  const runCounted = async (arrivals: readonly Arrival<Call>[]) => {
    try {
      return await runInTime(arrivals, run, maxWaitMs);
    } finally {
      const sendNext = waiting.shift();
      if (sendNext === undefined) active -= 1;
      else sendNext();
    }
  };
  const schedule = (send: () => void) => {
    if (active === maxConcurrent) {
      waiting.push(send);
      return;
    }
    active += 1;
    process.nextTick(send);
  };
  const options = { cache: false, maxBatchSize: maxSize, batchScheduleFn: schedule };
  const loader = new DataLoader<Arrival<Call>, Result>(runCounted, options);
  return { load: (call) => loader.load({ call, at: performance.now() }) };
}

async function runInTime<Call, Result>(
  arrivals: readonly Arrival<Call>[],
  run: (calls: readonly Call[]) => Promise<(Result | Error)[]>,
  maxWaitMs: number,
): Promise<(Result | Error)[]> {
  const sendableFrom = performance.now() - maxWaitMs;
  const isInTime = ({ at }: Arrival<Call>) => at > sendableFrom;
  const calls = arrivals.filter(isInTime).map(({ call }) => call);
  const results = (calls.length > 0 ? await run(calls) : []).values();
  return arrivals.map((arrival) =>
    isInTime(arrival)
      ? (results.next().value as Result)
      : new TimeoutError(`Not sent within ${maxWaitMs} ms`),
  );
}
