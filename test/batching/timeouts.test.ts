import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { TimeoutTimer } from '../../src/batching/timeouts.js';

const INTERVAL_MS = 40;

let elapsedMs = 0;
beforeEach(() => {
  elapsedMs = 0;
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  vi.spyOn(performance, 'now').mockImplementation(() => elapsedMs);
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

function createTimer(): TimeoutTimer {
  return new TimeoutTimer({
    timeoutMs: 160,
    intervalMs: INTERVAL_MS,
    lateInterval: 0.5,
    createError: () => new Error('late'),
  });
}

/** Ends intervals, each after so many milliseconds. */
async function endIntervals(count: number, tookMs = INTERVAL_MS): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    elapsedMs += tookMs;
    vi.advanceTimersByTime(INTERVAL_MS);
    await new Promise(setImmediate);
  }
}

function observe(promise: Promise<unknown>) {
  const seen: { outcome?: unknown } = {};
  promise.then(
    (value) => Object.assign(seen, { outcome: value }),
    (error: Error) => Object.assign(seen, { outcome: error.message }),
  );
  return seen;
}

test('a promise that does not settle is rejected after its intervals, and others keep theirs', async () => {
  const timer = createTimer();
  const first = observe(timer.race(new Promise(() => {})));
  await endIntervals(2);
  const second = observe(timer.race(new Promise(() => {})));
  await endIntervals(1);
  expect(first).toEqual({});
  await endIntervals(1);
  expect([first, second]).toEqual([{ outcome: 'late' }, {}]);
  await endIntervals(2);
  expect(second).toEqual({ outcome: 'late' });
});

test('intervals for which this process was late count in part: the other side gets up to twice the time', async () => {
  const timer = createTimer();
  const seen = observe(timer.race(new Promise(() => {})));
  await endIntervals(7, 5 * INTERVAL_MS);
  expect(seen).toEqual({});
  await endIntervals(1, 5 * INTERVAL_MS);
  expect(seen).toEqual({ outcome: 'late' });
});

test('an answer that has arrived when the time is over is read before it counts as missing', async () => {
  const timer = createTimer();
  let resolve: (value: unknown) => void = () => {};
  const promise = new Promise((each) => {
    resolve = each;
  });
  const seen = observe(timer.race(promise));
  await endIntervals(3);
  elapsedMs += INTERVAL_MS;
  vi.advanceTimersByTime(INTERVAL_MS);
  resolve('answer');
  await new Promise(setImmediate);
  expect(seen).toEqual({ outcome: 'answer' });
});
