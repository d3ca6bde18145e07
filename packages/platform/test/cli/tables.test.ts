import { expect, test } from 'vitest';
import { list } from '#operations-under-test';
import { formatTable, summariseKeys } from '../../src/cli/usage-tables.js';
import { maskControls } from '../../src/process/terminal-text.js';

/** What a key called on a day, as the database reports it */
const calls = (name: string, requests: number) => ({
  id: name,
  name,
  owner: null,
  operation: list.name,
  requests,
  denied: 10 - requests,
  day: '2026-11-01',
});

test('all keys are in the order of their requests, whatever the order of their rows', () => {
  const rows = [calls('b', 2), calls('d', 1), calls('a', 3), calls('c', 4), calls('d', 8)];
  for (const each of [rows, rows.toReversed()]) {
    const summaries = summariseKeys(each, []).map(({ name, requests }) => [name, requests]);
    expect(summaries).toEqual([
      ['d', 9],
      ['c', 4],
      ['a', 3],
      ['b', 2],
    ]);
  }
});

test('they may be in the order of what was denied', () => {
  const rows = [calls('b', 2), calls('a', 3), calls('c', 1)];
  expect(summariseKeys(rows, [], 'denied').map(({ name }) => name)).toEqual(['c', 'b', 'a']);
});

test('a table may have any number of rows', () => {
  const rows = Array.from({ length: 200_000 }, () => ['x', 'y']);
  expect(formatTable([['LONG', 'Y'], ...rows]).slice(-8)).toBe('\nx     y');
});

test('a control character in a cell, which anybody who writes to the database may have put there, does not reach the terminal', () => {
  const table = formatTable([['NAME'], ['\u001b[2Jx\r\n\u009b1m']]);
  expect(table).toBe('NAME\n?[2Jx???1m');
});

test('nor does one that turns the direction of a line, or ends it', () => {
  const turning = '\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029';
  expect(formatTable([['NAME'], [`a${turning}ž犬`]])).toBe(`NAME\na${'?'.repeat(turning.length)}ž犬`);
});

test("an error's message, which may be the database's, keeps its lines, and nothing else that a terminal obeys", () => {
  expect(maskControls('a\n  b\u001b[2J\r\u202ec', '\n')).toBe('a\n  b?[2J??c');
});
