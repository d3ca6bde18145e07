import { expect, onTestFinished, test, vi } from 'vitest';
import { CircuitBreaker } from '../../../src/platform/limits/circuit-breaker.js';

/** An open breaker whose trials never succeed unless told otherwise, and the reasons that it logs. */
function createBreaker(trial: () => Promise<unknown> = () => new Promise(() => {})) {
  const reasons: unknown[] = [];
  const breaker = new CircuitBreaker({
    trial,
    trialKey: 'key',
    reconnect: () => {},
    observe: () => {},
    log: { info: () => {}, warn: (details) => reasons.push((details as { reason: unknown }).reason) },
  });
  return { breaker, reasons };
}

test('each reason of an outage is logged once, and `ready` names the last one', async () => {
  const { breaker, reasons } = createBreaker();
  for (const reason of ['refused', 'refused', 'certificate has expired', 'refused']) {
    breaker.noteReason(new Error(reason));
  }
  expect(reasons).toEqual(['refused', 'certificate has expired']);
  await expect(breaker.ready(-1)).rejects.toThrow('Redis cannot be used (refused)');
  breaker.dispose();
});

test('a name with several addresses: the reason is that of each, not the empty message of them all', () => {
  const { breaker, reasons } = createBreaker();
  const refused = ['::1', '127.0.0.1'].map((address) => new Error(`connect ECONNREFUSED ${address}`));
  breaker.noteReason(new AggregateError(refused));
  expect(reasons).toEqual(['connect ECONNREFUSED ::1, connect ECONNREFUSED 127.0.0.1']);
  breaker.dispose();
});

test('`ready` resolves at once after a trial has succeeded, and looks no more often than a start needs', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { breaker } = createBreaker(async () => {});
  const looks = vi.spyOn(Date, 'now');
  onTestFinished(() => looks.mockRestore());
  let isReady = false;
  void breaker.ready(2_000).then(() => {
    isReady = true;
  });
  // Trials are 200 ms apart.
  await vi.advanceTimersByTimeAsync(199);
  expect(isReady).toBe(false);
  await vi.advanceTimersByTimeAsync(51);
  expect(isReady).toBe(true);
  expect(looks.mock.calls.length).toBeLessThan(30);
  breaker.dispose();
});
