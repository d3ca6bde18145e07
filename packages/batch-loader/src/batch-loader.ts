import { channel, tracingChannel } from 'node:diagnostics_channel';
import { TimeoutError } from './timeouts.js';

export { TimeoutError, withTimeout } from './timeouts.js';

export interface BatchOptions {
  /** The most calls in a batch. Default: no limit */
  readonly maxSize?: number;
  /** The most batches that run at once. Default 2 */
  readonly maxConcurrent?: number;
  /**
   * The fewest calls that are worth a batch of their own while another batch runs. Calls are then split into two shares,
   * each half of all calls that wait or run, so that one batch runs while the results of the other are used. A batch takes
   * a share, or all waiting calls if fewer than this would be left. While a batch runs, fewer calls than a share wait until
   * it ends. Default: nothing is split, and a batch takes all waiting calls
   */
  readonly splitFrom?: number;
  /** A call that waits longer is rejected with a TimeoutError, and never sent. Default: no limit */
  readonly maxWaitMs?: number;
  /**
   * For tracing, the name of two diagnostics channels: `<name>.call` is published with each call in the context of its caller,
   * and the tracing channel `<name>` runs a batch with the same objects as its `calls`. This attributes a batch to all of its
   * callers, where it would seem to belong to the first. Without subscribers nothing is published. Default `batch-loader`
   */
  readonly channelName?: string;
}

/** After this many batches of one call in a row there is no load, and waiting for a second call would only cost time. */
const SINGLES_WITHOUT_LOAD = 8;

interface Waiting<Call, Result> {
  readonly call: Call;
  /** By performance.now() */
  readonly since: number;
  readonly resolve: (result: Result) => void;
  readonly reject: (reason: unknown) => void;
}

/** What `run` has made of a batch: a result for each of its calls, or why there is none for any */
interface Outcome<Result> {
  readonly results?: readonly (Result | Error)[];
  readonly reason?: unknown;
}

export interface BatchLoader<Call, Result> {
  /**
   * @param yields true to send this call after all calls that do not yield. Default false. Only `true` itself counts, so
   *   that `load` can be passed to `map`
   */
  load(call: Call, yields?: boolean): Promise<Result>;
}

/**
 * Merges calls into batches. While fewer than `maxConcurrent` run, the calls of one event-loop tick are sent at its end.
 * Otherwise, or if they are fewer than a share, they wait until a batch ends, so batches grow with the load. Without load,
 * when each call ended before the next was made, a call is sent at once.
 *
 * `run` resolves with an array of one result for each call, in their order. A result that is an Error, of any realm, rejects
 * that call alone. If `run` throws or rejects, its error rejects all calls of the batch. If it resolves with anything else,
 * a TypeError does, because nobody could tell whose results those are.
 *
 * @throws TypeError for a `run` that is no function. @throws RangeError for an option with which calls would never settle
 */
export function createBatchLoader<Call, Result>(
  run: (calls: readonly Call[]) => Promise<readonly (Result | Error)[]>,
  options: BatchOptions = {},
): BatchLoader<Call, Result> {
  const {
    maxSize = Number.POSITIVE_INFINITY,
    maxConcurrent = 2,
    splitFrom = 0,
    maxWaitMs = Number.POSITIVE_INFINITY,
    channelName = 'batch-loader',
  } = options;
  if (typeof run !== 'function') throw new TypeError(`run must be a function: ${typeof run}`);
  checkNumbers({ maxSize, maxConcurrent, maxWaitMs }, 1);
  checkNumbers({ splitFrom }, 0);
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
      const waitsForMore = running > 0 && count < Math.min(share, maxSize);
      if (count === 0 || waitsForMore) return;
      // They would have to wait for another batch.
      const leavesTooFew = count - share < splitFrom;
      const size = Math.min(leavesTooFew ? count : share, maxSize);
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
    const settle = () => settleBatch(run, calls);
    const { results, reason } = await (batchChannel.start.hasSubscribers
      ? batchChannel.start.runStores({ calls: batch }, settle)
      : settle());
    running -= 1;
    callsUnderWay -= batch.length;
    // Using the results may take long, so the next batch starts first.
    sendNext();
    for (const [index, { resolve, reject }] of batch.entries()) {
      const result = results?.[index];
      if (results === undefined) reject(reason);
      else if (isError(result)) reject(result);
      else resolve(result as Result);
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
        (yields === true ? yielding : waiting).push(entry);
        if (running > 0) singlesInARow = 0;
        if (singlesInARow >= SINGLES_WITHOUT_LOAD) sendNext();
        else if (running < maxConcurrent) schedule();
      }),
  };
}

/** Never rejects, because an unhandled rejection would end the process. */
async function settleBatch<Call, Result>(
  run: (calls: readonly Call[]) => Promise<readonly (Result | Error)[]>,
  calls: readonly Call[],
): Promise<Outcome<Result>> {
  // `run` may empty the array that it is given.
  const { length } = calls;
  try {
    const results: unknown = await run(calls);
    // `run` may fill the same array for the next batch, which starts before these results are used.
    if (Array.isArray(results) && results.length === length) return { results: results.slice() };
    const what = Array.isArray(results) ? results.length : results === null ? 'null' : typeof results;
    throw new TypeError(`run must resolve with an array of one result for each of ${length} calls: ${what}`);
  } catch (reason) {
    return { reason };
  }
}

const toTag = Object.prototype.toString;

/** Accepts errors of other realms, too: in Jest, every Error of Node.js is one, and `instanceof` is false. */
function isError(result: unknown): result is Error {
  if (result instanceof Error) return true;
  const tag = toTag.call(result);
  return tag === '[object Error]' || tag === '[object DOMException]';
}

/** @throws RangeError */
function checkNumbers(options: Readonly<Record<string, number>>, min: number): void {
  for (const [name, value] of Object.entries(options))
    if (typeof value !== 'number' || !(value >= min))
      throw new RangeError(`${name} must be a number from ${min}: ${value}`);
}

/** Removes the calls that have waited too long from the front of a queue. */
function rejectLate<Call, Result>(queue: Waiting<Call, Result>[], maxWaitMs: number): void {
  const sendableFrom = performance.now() - maxWaitMs;
  const inTime = queue.findIndex(({ since }) => since > sendableFrom);
  for (const { reject } of queue.splice(0, inTime < 0 ? queue.length : inTime)) {
    reject(new TimeoutError(`Not sent within ${maxWaitMs} ms`));
  }
}
