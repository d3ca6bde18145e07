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
  return { ...apiKey, state: stateOf(apiKey, now), limits: limitsOf(apiKey) };
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
    ['State', describeState(apiKey, now)],
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
    describeState(apiKey, now),
  ];
}

/** Only requests with an active key are served. */
function stateOf({ revokedAt, expiresAt, bannedUntil }: ApiKey, now: number) {
  if (revokedAt !== null) return 'revoked';
  if (expiresAt !== null && !isAfter(expiresAt, now)) return 'expired';
  return isAfter(bannedUntil, now) ? 'banned' : 'active';
}

/** The state with its moment, and until when the old key of a rotation works. */
function describeState(apiKey: ApiKey, now: number): string {
  const { revokedAt, bannedUntil, previousExpiresAt } = apiKey;
  const state = stateOf(apiKey, now);
  if (state === 'revoked') return `revoked since ${formatMinute(revokedAt)}`;
  if (state === 'banned') return `banned until ${formatMinute(bannedUntil)}`;
  return state === 'active' && isAfter(previousExpiresAt, now)
    ? `active, the old key too until ${formatMinute(previousExpiresAt)}`
    : state;
}

function isAfter(date: Date | null, now: number): boolean {
  return date !== null && date.getTime() > now;
}

/** In UTC, without seconds */
function formatMinute(date: Date | null): string {
  return date === null ? 'never' : `${date.toISOString().slice(0, 16)}Z`;
}
