import type { Standing } from '../limits/limiter.js';
import { limitsOf } from '../limits/plans.js';
import type { ApiKey } from './store.js';

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
  const rows = [HEADINGS, ...apiKeys.map((apiKey) => toRow(apiKey, now))];
  const widths = HEADINGS.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '));
  return lines.map((line) => `${line.trimEnd()}\n`).join('');
}

/** What the limits know of a key, for people: a paragraph for each place that counts. */
export function describeStandings(standings: readonly Standing[]): string {
  if (standings.length === 0)
    return 'No service is running, and without REDIS_URL nothing is counted outside of one.\n';
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
    apiKey.expiresAt === null ? 'never' : toDay(apiKey.expiresAt),
    describeState(apiKey, now),
  ];
}

function describeState({ revokedAt, expiresAt }: ApiKey, now: number): string {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && expiresAt.getTime() <= now ? 'expired' : 'active';
}

function toDay(date: Date): string {
  return date.toISOString().slice(0, 10);
}
