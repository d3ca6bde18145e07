import { TimeoutError } from '@animal-store/batch-loader';
import { afterEach, expect, test, vi } from 'vitest';
import { limitByTable } from '../../src/connections/statement-pool.js';
import { CONNECT_TIMEOUT_MS } from '../../src/timing/timeouts.js';

afterEach(() => void vi.useRealTimers());

/** Statements that run until they are ended, in the order in which they were started. */
function createStatements() {
  const running: { readonly name: string; readonly end: () => void }[] = [];
  const start = (name: string) => () =>
    new Promise<string>((resolve) => {
      running.push({ name, end: () => resolve(name) });
    });
  return { running, start, names: () => running.map(({ name }) => name) };
}

test('of one table only so many statements run at once, in their order, and those of others and of none at once', async () => {
  const limit = limitByTable(2);
  const { running, start, names } = createStatements();
  const locked = ['a1', 'a2', 'a3', 'a4'].map((name) => limit('a', start(name)));
  const others = [limit('b', start('b1')), limit(undefined, start('none'))];
  await expect.poll(names).toEqual(expect.arrayContaining(['a1', 'a2', 'b1', 'none']));
  expect(running).toHaveLength(4);
  for (const { end } of running.splice(0)) end();
  expect(await Promise.all(others)).toEqual(['b1', 'none']);
  await expect.poll(names).toEqual(['a3', 'a4']);
  for (const { end } of running) end();
  expect(await Promise.all(locked)).toEqual(['a1', 'a2', 'a3', 'a4']);
});

test('a statement that has waited for others on its table longer than for a connection is rejected, and never sent', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const limit = limitByTable(1);
  const { running, start, names } = createStatements();
  const first = limit('a', start('first'));
  const late = limit('a', start('late'));
  late.catch(() => {});
  await expect.poll(names).toEqual(['first']);
  vi.advanceTimersByTime(CONNECT_TIMEOUT_MS + 1);
  const next = limit('a', start('next'));
  running[0]?.end();
  await expect(late).rejects.toThrow(TimeoutError);
  await expect.poll(names).toEqual(['first', 'next']);
  running[1]?.end();
  expect(await Promise.all([first, next])).toEqual(['first', 'next']);
});

test('a statement that fails makes room for the next one', async () => {
  const limit = limitByTable(1);
  const failed = limit('a', () => Promise.reject(new Error('failed')));
  expect(await limit('a', async () => 'next')).toBe('next');
  await expect(failed).rejects.toThrow('failed');
});
