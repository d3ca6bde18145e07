import { channel, tracingChannel } from 'node:diagnostics_channel';
import { TimeoutError } from './timeouts.js';

export { TimeoutError, withTimeout } from './timeouts.js';

export interface BatchOptions {
  /** The most calls in a batch. Default: no limit */
  readonly maxSize?: number;
  /** The most batches that run at once. Default 2 */
  readonly maxConcurrent?: number;
  /**
   * The fewest calls that are worth a batch of their own while another runs. Calls are then split into two shares, each
   * half of all that wait or run, so that one batch runs while the results of the other are used. A batch takes a share, or
   * all that wait if fewer than this would be left. While a batch runs, fewer calls than a share wait for its end. Default:
   * nothing is split, and a batch takes all that wait
   */
  readonly splitFrom?: number;
  /** A call that waits longer is rejected with a TimeoutError, and never sent. Default: no limit */
  readonly maxWaitMs?: number;
  /**
   * For tracing, the name of two diagnostics channels: `<name>.call` is published with each call in the context of its
   * caller, and the tracing channel `<name>` runs a batch with the same objects as its `calls`. So a subscriber can tell for
   * whom a batch runs, which otherwise seems to belong to whoever came first. Without subscribers nothing is published.
   * Default `batch-loader`
   */
  readonly channelName?: string;
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

export interface BatchLoader<Call, Result> {
  /** @param yields whether all calls that do not yield are sent before this one. Default false */
  load(call: Call, yields?: boolean): Promise<Result>;
}

/**
 * Merges calls into batches. While fewer than `maxConcurrent` run, the calls of one event-loop tick are sent at its end.
 * Otherwise, or if they are fewer than a share, they wait for the end of a batch: the more there is to do, the larger
 * the batches. Without load, when each call ended before the next was made, a call is sent at once.
 *
 * `run` resolves with a result for each call, in their order; an Error rejects that call alone.
 */
export function createBatchLoader<Call, Result>(
  run: (calls: readonly Call[]) => Promise<readonly (Result | Error)[]>,
  {
    maxSize = Number.POSITIVE_INFINITY,
    maxConcurrent = 2,
    splitFrom = 0,
    maxWaitMs = Number.POSITIVE_INFINITY,
    channelName = 'batch-loader',
  }: BatchOptions = {},
): BatchLoader<Call, Result> {
  const callChannel = channel(`${channelName}.call`);
  const batchChannel = tracingChannel<unknown, { readonly calls: readonly object[] }>(channelName);
  const waiting: Waiting<Call, Result>[] = [];
  const yielding: Waiting<Call, Result>[] = [];
  let running = 0;
  let callsUnderWay = 0;
  let isScheduled = false;
  /** How many batches in a row held one call, each of which ended before the next call was made */
  let singlesInARow = 0;
  const sendNext = () => {
    isScheduled = false;
    for (const queue of [waiting, yielding]) rejectLate(queue, maxWaitMs);
    while (running < maxConcurrent) {
      const count = waiting.length + yielding.length;
      const share = splitFrom > 0 ? Math.max(splitFrom, Math.floor((count + callsUnderWay) / 2)) : count;
      if (count === 0 || (running > 0 && count < Math.min(share, maxSize))) return;
      // Calls that are fewer than a share would have to wait for another batch.
      const size = Math.min(count - share < splitFrom ? count : share, maxSize);
      const batch = waiting.splice(0, size);
      batch.push(...yielding.splice(0, size - batch.length));
      void send(batch);
    }
  };
  const send = async (batch: readonly Waiting<Call, Result>[]) => {
    running += 1;
    callsUnderWay += batch.length;
    singlesInARow = batch.length === 1 && running === 1 ? singlesInARow + 1 : 0;
    const calls = batch.map(({ call }) => call);
    const settle = () => run(calls).catch((error: Error) => calls.map(() => error));
    const results = await (batchChannel.start.hasSubscribers
      ? batchChannel.start.runStores({ calls: batch }, settle)
      : settle());
    running -= 1;
    callsUnderWay -= batch.length;
    // The next batch starts before the results are used, which may take long.
    sendNext();
    for (const [index, { resolve, reject }] of batch.entries()) {
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
    load: (call, yields = false) =>
      new Promise((resolve, reject) => {
        const entry = { call, since: performance.now(), resolve, reject };
        if (callChannel.hasSubscribers) callChannel.publish(entry);
        (yields ? yielding : waiting).push(entry);
        if (running > 0) singlesInARow = 0;
        if (singlesInARow >= SINGLES_WITHOUT_LOAD) sendNext();
        else if (running < maxConcurrent) schedule();
      }),
  };
}

/** Removes the calls that have waited too long from the front of a queue. */
function rejectLate<Call, Result>(queue: Waiting<Call, Result>[], maxWaitMs: number): void {
  const sendableFrom = performance.now() - maxWaitMs;
  const inTime = queue.findIndex(({ since }) => since > sendableFrom);
  for (const { reject } of queue.splice(0, inTime < 0 ? queue.length : inTime)) {
    reject(new TimeoutError(`Not sent within ${maxWaitMs} ms`));
  }
}
