import { limitsOf } from '../contract/plans.js';
import { SCOPES } from '../contract/scopes.js';
import { nextBanSeconds } from '../keys/bans.js';
import type { ApiKey } from '../keys/store.js';
import type { LimitStatus } from '../limits/rate-limit-result.js';
import { formatTable } from './tables.js';

const KEY_HEADINGS = [
  'ID',
  'NAME',
  'KEY',
  'PLAN',
  'PER MINUTE',
  'PER DAY',
  'SCOPES',
  'CREATED',
  'EXPIRES',
  'STATE',
] as const;

/** A label and its value; an empty label continues the field before. */
type Field = readonly [label: string, value: string];

/** A key with its state at `now`, in Unix milliseconds, and the limits in effect, for --json. */
export function toKeyJson(apiKey: ApiKey, now: number) {
  return { ...apiKey, state: stateOf(apiKey, now)[0], limits: limitsOf(apiKey) };
}

/** Keys as a table for people, one line each. */
export function formatKeys(apiKeys: readonly ApiKey[], now: number): string {
  return formatTable([KEY_HEADINGS, ...apiKeys.map((apiKey) => toKeyRow(apiKey, now))]);
}

/** One key for people, one line for each field; `more` follows its own fields. */
export function formatKey(apiKey: ApiKey, now: number, more: readonly Field[] = []): string {
  const { perMinute, perDay } = limitsOf(apiKey);
  return formatTable([
    ['ID', apiKey.id],
    ['Name', apiKey.name],
    ['Key', `${apiKey.hint}…`],
    ['Plan', apiKey.plan],
    ['Limits', `${perMinute} per minute, ${perDay} per day`],
    ['Scopes', apiKey.scopes.join(', ')],
    ['Created', formatMinute(apiKey.createdAt)],
    ['Expires', formatMinute(apiKey.expiresAt)],
    ['State', stateOf(apiKey, now)[1]],
    ...more,
  ]);
}

/**
 * What a key has left, and how long its next ban would last. `windows` is undefined without REDIS_URL: whether the
 * running services have a Redis cannot be known then.
 */
export function toLimitFields(
  apiKey: ApiKey,
  windows: readonly LimitStatus[] | undefined,
  now: number,
): Field[] {
  const left = windows?.map(
    ({ name, remaining, limit, resetSeconds }, index): Field => [
      index === 0 ? 'Left in Redis' : '',
      `${remaining} of ${limit} this ${name}, which ends in ${resetSeconds} s`,
    ],
  );
  const unknown: Field = [
    'Requests left',
    'unknown without REDIS_URL: a service counts in its Redis, or else in its processes',
  ];
  return [...(left ?? [unknown]), ['Next ban', `${nextBanSeconds(apiKey, now)} s`]];
}

function toKeyRow(apiKey: ApiKey, now: number): string[] {
  const { perMinute, perDay } = limitsOf(apiKey);
  return [
    apiKey.id,
    apiKey.name,
    `${apiKey.hint}…`,
    apiKey.plan,
    String(perMinute),
    String(perDay),
    // Most keys have all.
    SCOPES.every((scope) => apiKey.scopes.includes(scope)) ? 'all' : apiKey.scopes.join(','),
    apiKey.createdAt.toISOString().slice(0, 10),
    formatMinute(apiKey.expiresAt),
    stateOf(apiKey, now)[1],
  ];
}

/** The state of a key, of which only `active` is served; and for people, with its moment. */
function stateOf(apiKey: ApiKey, now: number): readonly [name: string, description: string] {
  const { revokedAt, expiresAt, bannedUntil, previousExpiresAt } = apiKey;
  if (revokedAt !== null) return ['revoked', `revoked since ${formatMinute(revokedAt)}`];
  if (expiresAt !== null && !isAfter(expiresAt, now)) return ['expired', 'expired'];
  if (isAfter(bannedUntil, now)) return ['banned', `banned until ${formatMinute(bannedUntil)}`];
  const oldKey = isAfter(previousExpiresAt, now)
    ? `, the old key too until ${formatMinute(previousExpiresAt)}`
    : '';
  return ['active', `active${oldKey}`];
}

function isAfter(date: Date | null, now: number): boolean {
  return date !== null && date.getTime() > now;
}

/** In UTC, without seconds */
function formatMinute(date: Date | null): string {
  return date === null ? 'never' : `${date.toISOString().slice(0, 16)}Z`;
}
