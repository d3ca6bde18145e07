import { FALLBACK_PLAN, type Limits, PLANS, type Plan } from '#store/plans.js';

/** The limits of a key. One that lacks those of its own gets the fallback's: bad data must not lift the limits. */
export function limitsOf(key: { plan: Plan; perMinute: number | null; perDay: number | null }): Limits {
  const { perMinute, perDay } = PLANS[FALLBACK_PLAN];
  return PLANS[key.plan] ?? { perMinute: key.perMinute ?? perMinute, perDay: key.perDay ?? perDay };
}

/** How long the first ban of a key lasts. */
export const FIRST_BAN_SECONDS = 300;

/** The plans as a Markdown table, for the OpenAPI document and the guide. */
export function toPlanTable(): string {
  const rows = Object.entries(PLANS).map(([plan, limits]: [string, Limits | undefined]) =>
    [plan, limits?.perMinute, limits?.perDay].map((cell) => cell?.toLocaleString('en') ?? 'set per key'),
  );
  const headings = ['plan', 'requests per minute', 'requests per day'];
  return [headings, headings.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
