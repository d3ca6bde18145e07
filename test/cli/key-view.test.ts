import { expect, test } from 'vitest';
import { formatKey, toKeyJson, toLimitFields } from '../../src/cli/key-view.js';
import type { ApiKey } from '../../src/keys/store.js';

const NOW = Date.parse('2026-11-20T12:00:00Z');
const PAST = new Date(NOW);
const FUTURE = new Date(NOW + 1);

const apiKey: ApiKey = {
  id: '0b54e7c0-3f6e-4d3a-9a53-6d8f4ce1a111',
  name: 'shop',
  hint: 'as_test_abcd',
  plan: 'free',
  perMinute: null,
  perDay: null,
  scopes: ['pets:read', 'orders:read'],
  createdAt: new Date('2026-11-19T23:59:59Z'),
  expiresAt: null,
  previousExpiresAt: null,
  revokedAt: null,
  bannedUntil: null,
  banSeconds: null,
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
  expect(toKeyJson(shown, NOW).state).toBe(state);
  expect(formatKey(shown, NOW)).toMatch(new RegExp(`^State +${text}$`, 'm'));
});

test('the requests left are those that Redis has, and unknown without REDIS_URL', () => {
  const window = { limit: 60, windowSeconds: 60, resetAtMs: NOW };
  const windows = [
    { ...window, name: 'minute', remaining: 59, resetSeconds: 12 },
    { ...window, name: 'day', remaining: 7, resetSeconds: 3_600 },
  ] as const;
  expect(toLimitFields(apiKey, windows, NOW)).toEqual([
    ['Left in Redis', '59 of 60 this minute, which ends in 12 s'],
    ['', '7 of 60 this day, which ends in 3600 s'],
    ['Next ban', '300 s'],
  ]);
  expect(toLimitFields(apiKey, undefined, NOW)).toEqual([
    ['Requests left', expect.stringMatching(/^unknown without REDIS_URL/)],
    ['Next ban', '300 s'],
  ]);
});
