/**
 * The windows in which requests are counted, the shortest first. `field` names the member of a plan's limits that holds a window's
 * limit. The first has to be the minute. Every plan has it, and an address is limited by it alone. A key is banned once
 * as many of its requests were denied within a minute as its limit allows. How long a ban lasts is in contract/bans.ts of the platform.
 */
export const WINDOWS = [
  { name: 'minute', lengthMs: 60_000, field: 'perMinute' },
  { name: 'day', lengthMs: 86_400_000, field: 'perDay' },
] as const;

/**
 * The limits of each plan; undefined where every key has its own. A window without a number does not limit the caller. A new plan
 * is one line here and a migration that adds it to the enum `plan`: the command line, the OpenAPI document and the guide's table
 * follow.
 */
export const PLANS = {
  free: { perMinute: 60, perDay: 1_000 },
  pro: { perMinute: 300, perDay: 10_000 },
  business: { perMinute: 1_000, perDay: 100_000 },
  enterprise: undefined,
} as const;
