import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { withTimeout } from '../../src/batching/timeouts.js';

const TIMEOUT_MS = 160;

let elapsedMs = 0;
beforeEach(() => {
  elapsedMs = 0;
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  vi.spyOn(performance, 'now').mockImplementation(() => elapsedMs);
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** Lets time pass. Timers that end meanwhile do so at its end, as after a pause of the process. */
function pass(ms: number): void {
  elapsedMs += ms;
  vi.advanceTimersByTime(ms);
}

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
  pass(80);
  const second = observe(withTimeout(TIMEOUT_MS, new Promise(() => {})));
  pass(79);
  await new Promise(setImmediate);
  expect([first, second]).toEqual([{}, {}]);
  pass(2);
  await new Promise(setImmediate);
  expect([first, second]).toEqual([LATE, {}]);
  pass(80);
  await new Promise(setImmediate);
  expect(second).toEqual(LATE);
});

test.each([
  { pausedMs: 200, extendedMs: 40 },
  { pausedMs: 5_000, extendedMs: TIMEOUT_MS },
])(
  'when this process was late, after $pausedMs ms, the other side gets up to twice the time',
  async ({ pausedMs, extendedMs }) => {
    const seen = observe(withTimeout(TIMEOUT_MS, new Promise(() => {})));
    elapsedMs += pausedMs - TIMEOUT_MS;
    pass(TIMEOUT_MS);
    pass(extendedMs - 1);
    await new Promise(setImmediate);
    expect(seen).toEqual({});
    pass(1);
    await new Promise(setImmediate);
    expect(seen).toEqual(LATE);
  },
);

test('an answer that has arrived when the time is over is read before it counts as missing', async () => {
  let resolve: (value: unknown) => void = () => {};
  const promise = new Promise((each) => {
    resolve = each;
  });
  const seen = observe(withTimeout(TIMEOUT_MS, promise));
  pass(TIMEOUT_MS);
  pass(1);
  resolve('answer');
  await new Promise(setImmediate);
  expect(seen).toEqual({ outcome: 'answer' });
});

test('a promise that settles in time leaves no timer', async () => {
  await withTimeout(TIMEOUT_MS, Promise.resolve());
  await expect(withTimeout(TIMEOUT_MS, Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(vi.getTimerCount()).toBe(0);
});
