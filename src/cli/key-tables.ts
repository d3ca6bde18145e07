import type { ApiKey } from '../keys/store.js';
import type { Standing } from '../limits/limiter.js';
import { limitsOf } from '../limits/plans.js';
import { formatTable } from './tables.js';

const HEADINGS = [
  'ID',
  'NAME',
  'KEY',
  'PLAN',
  'PER MINUTE',
  'PER DAY',
  'CREATED',
  'EXPIRES',
  'STATE',
] as const;

/** Keys as a table for people, a line each; `now` in Unix milliseconds tells which have expired. */
export function describeKeys(apiKeys: readonly ApiKey[], now: number): string {
  return formatTable([HEADINGS, ...apiKeys.map((apiKey) => toRow(apiKey, now))]);
}

/** What the limits know of a key, for people: a paragraph for each place that counts. */
export function describeStandings(standings: readonly Standing[]): string {
  if (standings.length === 0)
    return 'No service is running on this database, and without REDIS_URL nothing is counted outside of one.\n';
  return standings.map(describeStanding).join('\n');
}

function describeStanding({ windows, ban, nextBanSeconds }: Standing): string {
  const lines = windows.map(
    ({ name, remaining, limit, resetSeconds }) =>
      `This ${name}: ${remaining} of ${limit} left, ends in ${resetSeconds} s`,
  );
  lines.push(ban === null ? 'Not banned' : `Banned until ${new Date(ban.untilMs).toISOString()}`);
  lines.push(`A further ban would last ${nextBanSeconds} s`);
  return lines.map((line) => `${line}\n`).join('');
}

function toRow(apiKey: ApiKey, now: number): string[] {
  const { perMinute, perDay } = limitsOf(apiKey);
  return [
    apiKey.id,
    apiKey.name,
    `${apiKey.start}…`,
    apiKey.plan,
    String(perMinute),
    String(perDay),
    toDay(apiKey.createdAt),
    apiKey.expiresAt === null ? 'never' : toMinute(apiKey.expiresAt),
    describeState(apiKey, now),
  ];
}

function describeState({ revokedAt, expiresAt, previousExpiresAt }: ApiKey, now: number): string {
  if (revokedAt !== null) return `revoked since ${toMinute(revokedAt)}`;
  if (expiresAt !== null && expiresAt.getTime() <= now) return 'expired';
  const overlaps = previousExpiresAt !== null && previousExpiresAt.getTime() > now;
  return overlaps ? `active, the old key too until ${toMinute(previousExpiresAt)}` : 'active';
}

function toDay(date: Date): string {
  return date.toISOString().slice(0, 10);
}

/** Of UTC, the seconds left out */
function toMinute(date: Date): string {
  return `${date.toISOString().slice(0, 16)}Z`;
}
