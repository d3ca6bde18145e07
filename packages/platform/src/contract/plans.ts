import type { Definition, Limits } from '../definition/definition.js';

/** What a store sells */
export type Plans = Pick<Definition, 'plans' | 'fallbackPlan' | 'windows'>;

/** The limits of a key whose plan has none, each in a column of the key's row. */
export interface OwnLimits {
  readonly perMinute: number | null;
  readonly perDay: number | null;
}

/** What the limits of a plan apply to: each key, or all keys of an owner together */
export type LimitsPer = 'key' | 'owner';

/** The limits of a key. A key that lacks its own gets those of the fallback plan, so that bad data does not lift the limits. */
export function limitsOf(plans: Plans, key: { readonly plan: string } & OwnLimits): Limits {
  const fallback = fallbackLimits(plans);
  const { perMinute, perDay } = key;
  const own = { perMinute: perMinute ?? fallback.perMinute, perDay: perDay ?? fallback.perDay };
  return plans.plans[key.plan] ?? (perMinute === null || perDay === null ? { ...fallback, ...own } : own);
}

/** The limits of the fallback plan, which examples show, too. */
export function fallbackLimits({ plans, fallbackPlan }: Pick<Plans, 'plans' | 'fallbackPlan'>): Limits {
  const limits = plans[fallbackPlan];
  if (limits === undefined) throw new TypeError(`The plan ${fallbackPlan}, the fallback, has no limits`);
  return limits;
}

const SET_PER_KEY = 'set per key';

/** The plans as a Markdown table, for the OpenAPI document and the guide. */
export function toPlanTable({ plans, windows }: Plans): string {
  const own: Readonly<Record<string, string>> = { perMinute: SET_PER_KEY, perDay: SET_PER_KEY };
  const toCells = (limits: Limits | undefined) =>
    windows.map(({ field }) => (limits ?? own)[field]?.toLocaleString('en') ?? 'no limit');
  const rows = Object.entries(plans).map(([plan, limits]) => [plan, ...toCells(limits)]);
  const headings = ['plan', ...windows.map(({ name }) => `requests per ${name}`)];
  return [headings, headings.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** Limits for people: `60 per minute, 1000 per day`. */
export function formatLimits({ windows }: Plans, limits: Limits): string {
  const set = windows.filter(({ field }) => limits[field] !== undefined);
  return set.map(({ name, field }) => `${limits[field]} per ${name}`).join(', ');
}

const LIST = new Intl.ListFormat('en', { type: 'conjunction' });

/** The windows for people: `a minute and one of a day`, or `a second, one of a minute, and one of a day`. */
export function formatWindows({ windows }: Plans): string {
  const [first, ...more] = windows.map(({ name }) => (/^hour/.test(name) ? `an ${name}` : `a ${name}`));
  return LIST.format([first ?? '', ...more.map((each) => `one of ${each}`)]);
}
