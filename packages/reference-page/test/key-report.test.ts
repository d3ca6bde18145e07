import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { PLANS as OF_STORE, WINDOWS } from '../../../src/definition/plans.js';

const report = await import(pathToFileURL('packages/reference-page/src/key-report.js').href);

const DAY_MS = 86_400_000;
const NOW = Date.parse('2026-03-01T12:00:00Z');
const USAGE = [
  { day: '2026-03-01', operation: 'getPet', requests: 5, denied: 1, deprecated: true },
  { day: '2026-03-01', operation: 'listPets', requests: 2, denied: 0, deprecated: false },
  { day: '2026-01-31', operation: 'listPets', requests: 1, denied: 30, deprecated: false },
];

test('there are 30 days, the oldest first, with sums of what was admitted and denied', () => {
  const days = report.toDays(USAGE, NOW);
  expect(days).toHaveLength(30);
  expect(days[0]).toEqual({ day: '2026-01-31', admitted: 1, denied: 30 });
  expect(days[1]).toEqual({ day: '2026-02-01', admitted: 0, denied: 0 });
  expect(days[29]).toEqual({ day: '2026-03-01', admitted: 7, denied: 1 });
});

test('operations are listed by how often they were called, with the last day, and which are deprecated', () => {
  expect(report.toOperations(USAGE)).toEqual([
    { operation: 'listPets', deprecated: false, lastDay: '2026-03-01', admitted: 3, denied: 30 },
    { operation: 'getPet', deprecated: true, lastDay: '2026-03-01', admitted: 5, denied: 1 },
  ]);
});

const findNotices = (key: object) =>
  report
    .listNotices({ bannedUntil: null, expiresAt: null, ...key }, NOW)
    .map(({ text }: { text: string }) => text);

test.each([
  [30 * DAY_MS, 'in 30 days, at 2026-03-31 12:00:00 UTC'],
  [2 * DAY_MS - 1, 'in 1 day, at 2026-03-03 11:59:59 UTC'],
  [1, 'within a day, at 2026-03-01 12:00:00 UTC'],
])('a key that expires in %i ms is said to expire %s', (remainingMs, words) => {
  const expiresAt = new Date(NOW + remainingMs).toISOString();
  expect(findNotices({ expiresAt })).toEqual([`Expires ${words}. Ask for a new key before that.`]);
});

test('a ban is said before all else, and nothing where there is none and the key expires later or never', () => {
  const bannedUntil = '2026-03-01T12:05:00.123Z';
  expect(findNotices({ bannedUntil, expiresAt: new Date(NOW).toISOString() })).toEqual([
    'Banned until 2026-03-01 12:05:00 UTC. All other requests are denied until then.',
    expect.stringMatching(/^Expires/),
  ]);
  expect(findNotices({ expiresAt: new Date(NOW + 30 * DAY_MS + 1).toISOString() })).toEqual([]);
  expect(findNotices({})).toEqual([]);
});

test.each([
  [401, {}, /mistyped.*another environment.*expired.*revoked/],
  [429, { 'retry-after': '17' }, /too many requests.*Try again in 17 s\.$/],
  [503, { 'retry-after': '1' }, /cannot respond now\. Try again in 1 s\.$/],
  [503, {}, /Try again later\.$/],
  [500, { 'x-request-id': 'r-1' }, /error 500\. Quote r-1 when you report it\.$/],
  [502, {}, /error 502\.$/],
])('a response with status %i and %j is explained in words', (status, headers, words) => {
  expect(report.describeFailure(status, new Headers(headers as Record<string, string>))).toMatch(words);
});

const PLANS = {
  titles: ['plan', 'requests per minute', 'requests per day'],
  rows: [
    ['free', '60', '1,000'],
    ['pro', '300', '10,000'],
    ['enterprise', 'set per key', 'set per key'],
  ],
};

test('the plans are those of the table in the document', () => {
  const document = JSON.parse(readFileSync('docs/openapi.json', 'utf8'));
  const { titles, rows } = report.readPlans(document);
  expect(titles).toEqual(['plan', ...WINDOWS.map(({ name }) => `requests per ${name}`)]);
  expect(rows.map(([name]: string[]) => name)).toEqual(Object.keys(OF_STORE));
  expect(report.readPlans({ info: { description: 'None.' } }).rows).toEqual([]);
});

test.each([
  [[], 'There were no requests in 30 days.'],
  [
    USAGE,
    'Refused 31 times in 30 days. You sent at most 31 a day, and free allows 1,000. Usage tells about days, not about minutes.',
  ],
  [
    [{ day: '2026-03-01', operation: 'getPet', requests: 9_000, denied: 1, deprecated: false }],
    'Refused once in 30 days. You sent at most 9,001 a day, and pro allows 10,000. Usage tells about days, not about minutes.',
  ],
  [
    [{ day: '2026-03-01', operation: 'getPet', requests: 10_001, denied: 0, deprecated: false }],
    'Refused never in 30 days. You sent at most 10,001 a day. Usage tells about days, not about minutes.',
  ],
])(
  'the use is compared with the days of the smallest plan that would do, and not with its minutes: %#',
  (usage, words) => {
    expect(report.comparePlans(usage, PLANS)).toBe(words);
  },
);
