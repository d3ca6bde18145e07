import { expect, onTestFinished, test, vi } from 'vitest';
import { CircuitBreaker } from '../src/circuit-breaker.js';

/** An open breaker whose trials never succeed unless told otherwise, the reasons that it logs, and how often it has replaced the connection. */
function createBreaker(trial: () => Promise<unknown> = () => new Promise(() => {})) {
  const reasons: unknown[] = [];
  let reconnected = 0;
  const breaker = new CircuitBreaker({
    trial,
    trialKey: 'key',
    timeoutMs: 160,
    reconnect: () => {
      reconnected += 1;
    },
    observe: () => {},
    log: { info: () => {}, warn: (details) => reasons.push((details as { reason: unknown }).reason) },
  });
  return { breaker, reasons, reconnects: () => reconnected };
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

test('an outage is logged even if it has the reason of an earlier one, which is over', async () => {
  const { breaker, reasons } = createBreaker(async () => {});
  await breaker.tryAgain();
  for (let outage = 0; outage < 2; outage += 1) {
    breaker.open(new Error('The connection was closed'));
    breaker.noteReason(new Error('refused'));
    await breaker.tryAgain();
    expect(breaker.isClosed).toBe(true);
  }
  expect(reasons).toEqual([
    ...['The connection was closed', 'refused'],
    ...['The connection was closed', 'refused'],
  ]);
  breaker.dispose();
});

test('a connection that is closed while nothing waits is no outage: commands wait for the next one, unless that takes too long or there is none', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  let isReachable = true;
  const { breaker, reasons } = createBreaker(async () => {
    if (!isReachable) throw new Error('refused');
  });
  await breaker.tryAgain();
  breaker.lose();
  expect([breaker.isClosed, reasons]).toEqual([true, []]);
  await breaker.tryAgain();
  await breaker.run('key', async () => {});
  expect([breaker.isClosed, reasons]).toEqual([true, []]);
  breaker.lose();
  const waiting = [1, 2].map((answer) => breaker.run('key', async () => answer));
  await vi.advanceTimersByTimeAsync(100);
  await breaker.tryAgain();
  expect([await Promise.all(waiting), breaker.isClosed, reasons]).toEqual([[1, 2], true, []]);
  isReachable = false;
  breaker.lose();
  const late = expect(breaker.run('key', async () => {})).rejects.toThrow('The circuit breaker is open');
  await vi.advanceTimersByTimeAsync(200);
  await late;
  expect([breaker.isClosed, reasons]).toEqual([false, ['The connection was closed']]);
  isReachable = true;
  await breaker.tryAgain();
  isReachable = false;
  breaker.lose();
  breaker.noteReason(new Error('refused'));
  expect([breaker.isClosed, reasons.at(-1)]).toEqual([false, 'refused']);
  breaker.dispose();
});

test('a connection that is closed while a command waits is an outage', async () => {
  const { breaker, reasons } = createBreaker(async () => {});
  await breaker.tryAgain();
  const waiting = breaker.run(
    'key',
    () => new Promise((_resolve, reject) => setImmediate(() => reject(new Error('lost')))),
  );
  breaker.lose();
  expect([breaker.isClosed, reasons]).toEqual([false, ['The connection was closed']]);
  await expect(waiting).rejects.toThrow('lost');
  breaker.dispose();
});

test('a breaker whose trials fail tries again until one succeeds, and replaces the connection now and then', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  let failures = 20;
  const { breaker, reconnects } = createBreaker(async () => {
    failures -= 1;
    if (failures >= 0) throw new Error('refused');
  });
  await vi.advanceTimersByTimeAsync(20 * 200);
  expect([breaker.isClosed, reconnects()]).toEqual([false, 2]);
  await vi.advanceTimersByTimeAsync(200);
  expect(breaker.isClosed).toBe(true);
  breaker.dispose();
});

test('a breaker that was disposed says nothing of the connection that is closed after it', async () => {
  const { breaker, reasons } = createBreaker(async () => {});
  await breaker.tryAgain();
  breaker.dispose();
  breaker.open(new Error('The connection was closed'));
  expect([breaker.isClosed, reasons]).toEqual([false, []]);
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
