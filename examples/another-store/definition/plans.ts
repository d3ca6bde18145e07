/** The windows in which requests are counted, the shortest first. Every plan has the minute. */
export const WINDOWS = [
  { name: 'minute', lengthMs: 60_000, field: 'perMinute' },
  { name: 'day', lengthMs: 86_400_000, field: 'perDay' },
] as const;
export type WindowName = (typeof WINDOWS)[number]['name'];
export interface Limits {
  readonly perMinute: number;
  readonly perDay?: number | undefined;
}

/** The limits of each plan; undefined where every key has its own. A migration has the names, too. */
export const PLANS = {
  trial: { perMinute: 30, perDay: 1_000 },
  standard: { perMinute: 600, perDay: 50_000 },
  custom: undefined,
} as const satisfies Readonly<Record<string, Limits | undefined>>;
export type Plan = keyof typeof PLANS;
export const PLAN_NAMES = Object.keys(PLANS) as Plan[];
/** For a key of `custom` without limits of its own, which the database does not allow */
export const FALLBACK_PLAN = 'trial';
/** Of the key that `npm start` prints */
export const DEVELOPMENT_PLAN = 'standard';
