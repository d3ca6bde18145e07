import { expect, test } from 'vitest';
import { definition, list, otherList } from '#operations-under-test';
import { formatKey, formatKeys, toKeyJson } from '../../src/cli/key-view.js';
import type { ListedKey } from '../../src/keys/api-key.js';

const NOW = Date.parse('2026-11-20T12:00:00Z');
const PAST = new Date(NOW);
const FUTURE = new Date(NOW + 1);

const apiKey: ListedKey = {
  id: '0b54e7c0-3f6e-4d3a-9a53-6d8f4ce1a111',
  name: 'shop',
  owner: null,
  hint: 'by_test_abcd',
  plan: 'free',
  perMinute: null,
  perDay: null,
  scopes: [list.scope, otherList.scope],
  createdAt: new Date('2026-11-19T23:59:59Z'),
  expiresAt: null,
  previousExpiresAt: null,
  revokedAt: null,
  bannedUntil: null,
  banSeconds: null,
  lastUsedOn: null,
};

test.each([
  [{}, 'active', 'active'],
  [{ previousExpiresAt: FUTURE }, 'active', 'active, the old key too until 2026-11-20T12:00Z'],
  [{ previousExpiresAt: PAST }, 'active', 'active'],
  [{ bannedUntil: PAST, expiresAt: FUTURE }, 'active', 'active'],
  [{ bannedUntil: FUTURE, previousExpiresAt: FUTURE }, 'banned', 'banned until 2026-11-20T12:00Z'],
  [{ bannedUntil: FUTURE, expiresAt: PAST }, 'expired', 'expired'],
  [{ bannedUntil: FUTURE, expiresAt: PAST, revokedAt: PAST }, 'revoked', 'revoked since 2026-11-20T12:00Z'],
])('a key with %j is %s, for people: %s', (members, state, text) => {
  const shown = { ...apiKey, ...members };
  expect(toKeyJson(definition, shown, NOW).state).toBe(state);
  expect(formatKey(definition, shown, NOW)).toMatch(new RegExp(`^State +${text}$`, 'm'));
});

test('the list fits 120 columns whatever the keys are like, and says their states in one word', () => {
  const longest = (all: readonly string[]) => [...all].sort((a, b) => b.length - a.length)[0];
  const widest = {
    ...apiKey,
    name: 'W'.repeat(200),
    owner: 'W'.repeat(200),
    plan: longest(Object.keys(definition.plans)) as ListedKey['plan'],
    scopes: definition.scopes.slice(1),
    lastUsedOn: '2026-11-20',
    expiresAt: FUTURE,
    previousExpiresAt: FUTURE,
  };
  const states = [{}, { bannedUntil: FUTURE }, { expiresAt: PAST }, { revokedAt: PAST }];
  const lines = formatKeys(
    definition,
    states.map((members) => ({ ...widest, ...members })),
    NOW,
  ).split('\n');
  expect(lines.map((line) => line.length <= 120)).toEqual(lines.map(() => true));
  const [headings, ...rows] = lines.map((line) => line.split(/ {2,}/));
  expect(headings).toEqual(['ID', 'NAME', 'OWNER', 'KEY', 'PLAN', 'SCOPES', 'LAST USED', 'EXPIRES', 'STATE']);
  expect(rows.map((cells) => cells.at(-1))).toEqual(['active', 'banned', 'expired', 'revoked']);
  expect(rows[0]?.slice(0, 2)).toEqual([
    '0b54e7c0',
    `${'W'.repeat(22 - definition.identity.keyPrefix.length)}…`,
  ]);
});

test('the list says on which days a key was last used and expires, if it was and does', () => {
  const used = { ...apiKey, lastUsedOn: '2026-11-18', expiresAt: new Date('2027-01-31T09:30:00Z') };
  const rows = formatKeys(definition, [used, apiKey], NOW)
    .split('\n')
    .map((line) => line.split(/ {2,}/).slice(-3));
  expect(rows.slice(1)).toEqual([
    ['2026-11-18', '2027-01-31', 'active'],
    ['-', 'never', 'active'],
  ]);
});
