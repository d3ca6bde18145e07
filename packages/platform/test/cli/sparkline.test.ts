import { expect, test } from 'vitest';
import { formatSparkline } from '../../src/cli/sparkline.js';

test('a range has a character a day, the newest last, by what was counted on it beside the most', () => {
  const counts = [
    ['2026-02-27', 1],
    ['2026-03-01', 400],
    ['2026-03-01', 400],
    ['2026-03-02', 399],
  ] as const;
  expect(formatSparkline(counts, { from: '2026-02-27', to: '2026-03-03' })).toBe('▂▁█▅▁');
});

test('of more than 30 days the last 30 are shown, and what was counted on others changes nothing', () => {
  const counts = [
    ['2026-03-01', 1_000_000],
    ['2026-03-02', 1],
    ['2026-04-01', 1_000_000],
  ] as const;
  const shown = formatSparkline(counts, { from: '2025-01-01', to: '2026-03-31' });
  expect(shown).toBe(`█${'▁'.repeat(29)}`);
});

test('days without requests are all the lowest', () => {
  expect(formatSparkline([], { from: '2026-03-01', to: '2026-03-03' })).toBe('▁▁▁');
});
