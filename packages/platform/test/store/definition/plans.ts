export const WINDOWS = [
  { name: 'minute', lengthMs: 60_000, field: 'perMinute' },
  { name: 'day', lengthMs: 86_400_000, field: 'perDay' },
] as const;

export const PLANS = {
  free: { perMinute: 60, perDay: 1_000 },
  pro: { perMinute: 300, perDay: 10_000 },
  business: { perMinute: 1_000, perDay: 100_000 },
  enterprise: undefined,
} as const;
