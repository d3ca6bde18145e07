import type { FastifyBaseLogger } from 'fastify';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createOverloadMonitor } from '../src/overload.js';

/** A logger that keeps the messages. */
const logTo = (lines: string[]) =>
  ({
    info: (message: string) => lines.push(message),
    warn: (_details: object, message: string) => lines.push(message),
  }) as unknown as FastifyBaseLogger;

test('requests that waited too long for their turn are denied, and callers that wait less are served', async () => {
  const monitor = createOverloadMonitor({
    log: logTo([]),
    overload: { delayMs: 100, sampleIntervalMs: 60_000 },
  });
  onTestFinished(() => monitor.close());
  expect(monitor.reason).toBeUndefined();
  expect(monitor.check(101)).toBe(2);
  expect(monitor.reason).toBe('queue');
  expect([monitor.check(99), monitor.check()]).toEqual([undefined, undefined]);
});

test('an overload is one line of the log when it begins, and one when it ends', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const lines: string[] = [];
  const monitor = createOverloadMonitor({
    log: logTo(lines),
    overload: { delayMs: 100, sampleIntervalMs: 20 },
  });
  onTestFinished(() => monitor.close());
  const now = performance.now.bind(performance);
  let lateMs = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now() + lateMs);
  onTestFinished(() => void vi.restoreAllMocks());
  vi.advanceTimersByTime(100);
  expect(lines).toEqual([]);
  for (let sample = 0; sample < 5; sample += 1) {
    lateMs += 200;
    vi.advanceTimersByTime(20);
  }
  expect(lines.splice(0)).toEqual(['overloaded: all requests get a 503']);
  vi.advanceTimersByTime(100);
  expect(lines.splice(0)).toEqual(['no longer overloaded']);
  monitor.check(101);
  vi.advanceTimersByTime(100);
  expect(lines.splice(0)).toEqual(['overloaded: some requests get a 503']);
  vi.advanceTimersByTime(2_000);
  expect(lines).toEqual(['no longer overloaded']);
});
