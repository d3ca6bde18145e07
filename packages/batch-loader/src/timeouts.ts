/** Thrown when something did not settle in time. It may still happen later. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError';
}

/** The unit in which timeouts are counted */
const COUNTED_INTERVAL_MS = 40;

/**
 * Settles like the promise, or rejects with a TimeoutError.
 *
 * Intervals are counted instead of time: a pause of this process, such as a garbage collection, is one interval however
 * long it lasts, and so is not taken for a stall of the other side. Data that has arrived by the end of the last interval
 * is read before it counts as missing, because setImmediate runs after that.
 */
export function withTimeout<T>(timeoutMs: number, promise: PromiseLike<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    let leftMs = timeoutMs;
    const timer = setTimeout(() => {
      leftMs -= COUNTED_INTERVAL_MS;
      if (leftMs > 0) timer.refresh();
      else setImmediate(() => reject(new TimeoutError(`No answer within ${timeoutMs} ms`)));
    }, COUNTED_INTERVAL_MS).unref();
    promise.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
