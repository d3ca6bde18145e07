export const WINDOWS = [
  { name: 'minute', lengthMs: 60_000, field: 'perMinute' },
  { name: 'day', lengthMs: 86_400_000, field: 'perDay' },
] as const;

type Window = (typeof WINDOWS)[number];

export type WindowName = Window['name'];

export type Limits = { readonly [Field in Window['field']]?: number | undefined } & {
  readonly perMinute: number;
};

export const PLANS = {
  free: { perMinute: 60, perDay: 1_000 },
  pro: { perMinute: 300, perDay: 10_000 },
  business: { perMinute: 1_000, perDay: 100_000 },
  enterprise: undefined,
} as const satisfies Readonly<Record<string, Limits | undefined>>;

export type Plan = keyof typeof PLANS;

export const PLAN_NAMES = Object.keys(PLANS) as Plan[];

/** Its limits would apply to a key of `enterprise` without limits of its own, which the database does not allow. */
export const FALLBACK_PLAN = 'free';

/** The plan of the key that a start on the embedded database prints. */
export const DEVELOPMENT_PLAN = 'business';
