import { afterEach, describe, expect, test, vi } from 'vitest';
import { formatSparkline } from '../../../src/platform/cli/sparkline.js';

const setLocale = (variables: Readonly<Record<string, string>>) => {
  for (const name of ['LC_ALL', 'LC_CTYPE', 'LANG']) vi.stubEnv(name, variables[name]);
};
afterEach(() => vi.unstubAllEnvs());

describe('where the locale has UTF-8', () => {
  test('a range has a character a day, the newest last, by what was counted on it beside the most', () => {
    setLocale({ LANG: 'C.UTF-8' });
    const counts = [
      ['2026-02-27', 1],
      ['2026-03-01', 400],
      ['2026-03-01', 400],
      ['2026-03-02', 399],
    ] as const;
    expect(formatSparkline(counts, { from: '2026-02-27', to: '2026-03-03' })).toBe('▂▁█▅▁');
  });

  test('of more than 30 days the last 30 are shown, and what was counted on others changes nothing', () => {
    setLocale({ LANG: 'en_US.utf8' });
    const counts = [
      ['2026-03-01', 1_000_000],
      ['2026-03-02', 1],
      ['2026-04-01', 1_000_000],
    ] as const;
    const shown = formatSparkline(counts, { from: '2025-01-01', to: '2026-03-31' });
    expect(shown).toBe(`█${'▁'.repeat(29)}`);
  });

  test('days without requests are all the lowest', () => {
    setLocale({ LC_ALL: 'C.UTF-8' });
    expect(formatSparkline([], { from: '2026-03-01', to: '2026-03-03' })).toBe('▁▁▁');
  });
});

test.each([
  [{}, '_#'],
  [{ LANG: 'C' }, '_#'],
  [{ LANG: 'de_DE.UTF-8' }, '▁█'],
  [{ LC_CTYPE: 'UTF-8', LANG: 'C' }, '▁█'],
  [{ LC_ALL: 'POSIX', LC_CTYPE: 'C.UTF-8', LANG: 'C.UTF-8' }, '_#'],
  [{ LC_ALL: '', LANG: 'C.UTF-8' }, '▁█'],
])('in the locale %j it is written as %s', (variables, expected) => {
  setLocale(variables);
  expect(formatSparkline([['2026-03-02', 7]], { from: '2026-03-01', to: '2026-03-02' })).toBe(expected);
});
