import { expect, test } from 'vitest';
import { formatHistory } from '../../src/cli/key-history-view.js';
import type { KeyChange } from '../../src/keys/history.js';

const CHANGE: KeyChange = {
  id: '0b54e7c0-0000-4000-8000-000000000000',
  name: 'shop',
  changedAt: new Date('2026-11-26T10:00:00.123Z'),
  sessionRole: 'anna',
  activeRole: 'anna',
  applicationName: 'psql',
  column: 'plan',
  oldValue: 'free',
  newValue: 'pro',
};

/** The cells of the only line, which two spaces or more tell apart */
const readLine = (change: Partial<KeyChange>) =>
  formatHistory([{ ...CHANGE, ...change }])
    .split('\n')[1]
    ?.split(/ {2,}/);

test.each<[string, Partial<KeyChange>, string[]]>([
  ['a change', {}, ['shop', 'anna', 'psql', 'plan', 'free', 'pro']],
  ['a value that was not there', { oldValue: null }, ['shop', 'anna', 'psql', 'plan', '-', 'pro']],
  ['a value that is gone', { newValue: null }, ['shop', 'anna', 'psql', 'plan', 'free', '-']],
  [
    'a role that used the rights of another',
    { activeRole: 'owner' },
    ['shop', 'anna as owner', 'psql', 'plan', 'free', 'pro'],
  ],
  ['a connection without a name', { applicationName: '' }, ['shop', 'anna', '-', 'plan', 'free', 'pro']],
  [
    'a new key',
    { column: null, oldValue: null, newValue: '{"plan":"pro"}' },
    ['shop', 'anna', 'psql', 'created', '-', '{"plan":"pro"}'],
  ],
  [
    'a deleted key',
    { column: null, oldValue: '{"plan":"pro"}', newValue: null },
    ['shop', 'anna', 'psql', 'deleted', '{"plan":"pro"}', '-'],
  ],
  ['a key without a name', { name: null }, ['-', 'anna', 'psql', 'plan', 'free', 'pro']],
])('keys history shows who did what: %s', (_what, change, cells) => {
  expect(readLine(change)).toEqual(['2026-11-26T10:00:00Z', '0b54e7c0', ...cells]);
});
