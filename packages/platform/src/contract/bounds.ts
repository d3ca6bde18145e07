/** The largest body that is read. */
export const BODY_LIMIT_BYTES = 64 * 1024;

/** How long a create is remembered under its Idempotency-Key. */
export const IDEMPOTENCY_TTL_HOURS = 24;
