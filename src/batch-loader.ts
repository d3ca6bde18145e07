import DataLoader from 'dataloader';
import { TimeoutError } from './timeouts.js';

export interface BatchOptions {
  /** The most calls in a batch. Default: no limit */
  readonly maxSize?: number;
  /** Whether calls that arrive while a batch is running wait for its end, and share the next. Default: no */
  readonly isExclusive?: boolean;
  /** A call that waited longer is rejected with a TimeoutError instead of sent. Default: no limit */
  readonly maxWaitMs?: number;
}

interface Arrival<Call> {
  readonly call: Call;
  /** By performance.now() */
  readonly at: number;
}

/**
 * Merges calls into batches. A call is sent without delay when no batch is running and the last one had no other call,
 * because to wait for others would only make a single caller slower. Otherwise it waits for those of its event-loop
 * tick, or, if batches are exclusive, for the end of the one before.
 */
export function createBatchLoader<Call, Result>(
  run: (calls: readonly Call[]) => Promise<(Result | Error)[]>,
  {
    maxSize = Number.POSITIVE_INFINITY,
    isExclusive = false,
    maxWaitMs = Number.POSITIVE_INFINITY,
  }: BatchOptions = {},
): { load(call: Call): Promise<Result> } {
  /** Batches that are scheduled or running */
  let active = 0;
  let lastSize = 1;
  const waiting: (() => void)[] = [];
  const runCounted = async (arrivals: readonly Arrival<Call>[]) => {
    lastSize = arrivals.length;
    try {
      return await runInTime(arrivals, run, maxWaitMs);
    } finally {
      active -= 1;
      const sendNext = waiting.shift();
      if (sendNext !== undefined) {
        active += 1;
        sendNext();
      }
    }
  };
  const schedule = (send: () => void) => {
    if (isExclusive && active > 0) {
      waiting.push(send);
      return;
    }
    const isAlone = active === 0 && lastSize === 1;
    active += 1;
    if (isAlone) process.nextTick(send);
    else setImmediate(send);
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
