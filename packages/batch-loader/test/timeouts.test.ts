import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { withTimeout } from '../src/batch-loader.js';

const TIMEOUT_MS = 160;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

function observe(promise: Promise<unknown>) {
  const seen: { outcome?: unknown } = {};
  promise.then(
    (value) => Object.assign(seen, { outcome: value }),
    (error: Error) => Object.assign(seen, { outcome: error.message }),
  );
  return seen;
}

const LATE = { outcome: 'No answer within 160 ms' };

test('a promise that does not settle is rejected after its time, and others keep theirs', async () => {
  const first = observe(withTimeout(TIMEOUT_MS, new Promise(() => {})));
  vi.advanceTimersByTime(80);
  const second = observe(withTimeout(TIMEOUT_MS, new Promise(() => {})));
  vi.advanceTimersByTime(79);
  await new Promise(setImmediate);
  expect([first, second]).toEqual([{}, {}]);
  vi.advanceTimersByTime(1);
  await new Promise(setImmediate);
  expect([first, second]).toEqual([LATE, {}]);
  vi.advanceTimersByTime(80);
  await new Promise(setImmediate);
  expect(second).toEqual(LATE);
});

test('a pause of this process is not taken for a stall of the other side, however long it lasts', async () => {
  vi.useRealTimers();
  const seen = observe(withTimeout(TIMEOUT_MS, new Promise(() => {})));
  const endsAtMs = performance.now() + 3 * TIMEOUT_MS;
  while (performance.now() < endsAtMs);
  // The timer fires, then what has arrived meanwhile is read.
  for (let n = 0; n < 2; n += 1) await new Promise(setImmediate);
  expect(seen).toEqual({});
  await expect.poll(() => seen).toEqual(LATE);
});

test('an answer that has arrived when the time is over is read before it counts as missing', async () => {
  let resolve: (value: unknown) => void = () => {};
  const promise = new Promise((each) => {
    resolve = each;
  });
  const seen = observe(withTimeout(TIMEOUT_MS, promise));
  vi.advanceTimersByTime(TIMEOUT_MS);
  resolve('answer');
  await new Promise(setImmediate);
  expect(seen).toEqual({ outcome: 'answer' });
});

test('a promise that settles in time leaves no timer', async () => {
  await withTimeout(TIMEOUT_MS, Promise.resolve());
  await expect(withTimeout(TIMEOUT_MS, Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(vi.getTimerCount()).toBe(0);
});
