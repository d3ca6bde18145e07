/** The largest body that is read. */
export const BODY_LIMIT_BYTES = 64 * 1024;

/** How long a create is remembered under its Idempotency-Key. */
export const IDEMPOTENCY_TTL_HOURS = 24;

/** For how many days before its expiry a key's responses announce it. */
export const EXPIRY_NOTICE_DAYS = 30;
