/** Requests in 60 seconds and in 86,400 seconds. Callers without a key have no `perDay`, and no daily window. */
export interface Limits {
  readonly perMinute: number;
  readonly perDay?: number | undefined;
}

/**
 * The limits of each plan; undefined where every key has its own. A new plan is one line here and a migration that adds
 * it to the enum `plan`: the command line, the OpenAPI document and the guide's table follow.
 */
export const PLANS = {
  free: { perMinute: 60, perDay: 1_000 },
  pro: { perMinute: 300, perDay: 10_000 },
  business: { perMinute: 1_000, perDay: 100_000 },
  enterprise: undefined,
} as const satisfies Readonly<Record<string, Limits | undefined>>;

export type Plan = keyof typeof PLANS;

export const PLAN_NAMES = Object.keys(PLANS) as Plan[];

/**
 * The limits of a key.
 *
 * A key without the limits that its plan requires, which a database constraint rules out, gets those of the free plan:
 * bad data must not lift the limits.
 */
export function limitsOf(key: { plan: Plan; perMinute: number | null; perDay: number | null }): Limits {
  const { perMinute, perDay } = PLANS.free;
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
