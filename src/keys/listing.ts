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
