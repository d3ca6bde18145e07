/**
 * The windows in which requests are counted, the shortest first. `field` names the member of Limits that holds a window's
 * limit. The first has to be the minute. Every plan has it, and an address is limited by it alone. As many denials within a
 * minute as the key's limit allows requests lead to a ban. How long a ban lasts is in contract/plans.ts and keys/bans.ts of the platform.
 */
export const WINDOWS = [
  { name: 'minute', lengthMs: 60_000, field: 'perMinute' },
  { name: 'day', lengthMs: 86_400_000, field: 'perDay' },
] as const;

type Window = (typeof WINDOWS)[number];

export type WindowName = Window['name'];

/**
 * How many requests fit into each window. A window without a number does not limit the caller. A client without a key, for
 * example, has ANONYMOUS_PER_MINUTE and no limit per day.
 */
export type Limits = { readonly [Field in Window['field']]?: number | undefined } & {
  readonly perMinute: number;
};

/**
 * The limits of each plan; undefined where every key has its own. A new plan is one line here and a migration that adds
 * it to the enum `plan`: the command line, the OpenAPI document and the guide's table follow. Like scopes.ts and
 * identity.ts, this file imports nothing.
 */
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
