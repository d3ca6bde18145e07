/** What a key is sold as; the database holds the same names. */
export type Plan = 'free' | 'pro' | 'business' | 'enterprise';

/** Requests in 60 seconds and in 86,400 seconds. `perDay` is null where no day is counted: callers without a key. */
export interface Limits {
  perMinute: number;
  perDay: number | null;
}

/** The limits of each plan that has fixed ones; an enterprise key carries its own. */
const plans = {
  free: { perMinute: 60, perDay: 1_000 },
  pro: { perMinute: 300, perDay: 10_000 },
  business: { perMinute: 1_000, perDay: 100_000 },
} as const satisfies Record<Exclude<Plan, 'enterprise'>, Limits>;

/**
 * The limits that hold for a key.
 *
 * A limit that an enterprise key lacks, which the database rules out, is the free plan's: a mistake there must
 * not open the service.
 */
export function limitsOf(key: { plan: Plan; perMinute: number | null; perDay: number | null }): Limits {
  if (key.plan !== 'enterprise') return plans[key.plan];
  return { perMinute: key.perMinute ?? plans.free.perMinute, perDay: key.perDay ?? plans.free.perDay };
}
