import { FALLBACK_PLAN, type Limits, PLANS, type Plan, WINDOWS } from '@animal-store/definition/plans';

/** The limits of a key whose plan has none, each in a column of the key's row. */
export interface OwnLimits {
  readonly perMinute: number | null;
  readonly perDay: number | null;
}

/** What the limits of a plan apply to: each key, or all keys of an owner together */
export type LimitsPer = 'key' | 'owner';

/** The limits of a key. A key that lacks its own gets those of the fallback plan, so that bad data does not lift the limits. */
export function limitsOf(key: { readonly plan: Plan } & OwnLimits): Limits {
  const fallback: Limits = PLANS[FALLBACK_PLAN];
  const { perMinute, perDay } = key;
  const own = { perMinute: perMinute ?? fallback.perMinute, perDay: perDay ?? fallback.perDay };
  return PLANS[key.plan] ?? (perMinute === null || perDay === null ? { ...fallback, ...own } : own);
}

/** How long the first ban of a key lasts. */
export const FIRST_BAN_SECONDS = 300;

const SET_PER_KEY = 'set per key';

/** The plans as a Markdown table, for the OpenAPI document and the guide. */
export function toPlanTable(): string {
  const own: Partial<Record<keyof Limits, string>> = { perMinute: SET_PER_KEY, perDay: SET_PER_KEY };
  const toCells = (limits: Limits | undefined) =>
    WINDOWS.map(({ field }) => (limits ?? own)[field]?.toLocaleString('en') ?? 'no limit');
  const rows = Object.entries<Limits | undefined>(PLANS).map(([plan, limits]) => [plan, ...toCells(limits)]);
  const headings = ['plan', ...WINDOWS.map(({ name }) => `requests per ${name}`)];
  return [headings, headings.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** Limits for people: `60 per minute, 1000 per day`. */
export function formatLimits(limits: Limits): string {
  const set = WINDOWS.filter(({ field }) => limits[field] !== undefined);
  return set.map(({ name, field }) => `${limits[field]} per ${name}`).join(', ');
}

/** The windows for people: `a minute and one of a day`. */
export function formatWindows(): string {
  return WINDOWS.map(({ name }) => (/^hour/.test(name) ? `an ${name}` : `a ${name}`)).join(' and one of ');
}
