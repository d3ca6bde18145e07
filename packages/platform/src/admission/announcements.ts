import type { RateLimitResult } from '@animal-store/limits';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { EXPIRY_NOTICE_DAYS } from '../contract/bounds.js';
import { deprecationHeaders } from '../contract/deprecation.js';
import type { ApiKey } from '../keys/api-key.js';

const EXPIRY_NOTICE_MS = EXPIRY_NOTICE_DAYS * 86_400_000;
/** Responses with one of these codes name no operation, and so lack the headers of a deprecation. */
const CODES_OF_MISSING: ReadonlySet<string | undefined> = new Set([
  'method_not_allowed',
  'operation_removed',
]);

/**
 * The headers that tell callers their limits, for every response.
 *
 * `X-RateLimit-*` are integers of the binding window, `-Reset` in Unix seconds rounded up. `RateLimit-Policy` and
 * `RateLimit` follow draft-ietf-httpapi-ratelimit-headers (structured field lists, RFC 9651): quota `q`, window
 * `w` in seconds, remaining `r`, seconds until reset `t`. `Retry-After` belongs to the error of a denied request.
 */
export function limitHeaders({ windows, binding }: RateLimitResult): Record<string, string> {
  return {
    'x-ratelimit-limit': String(binding.limit),
    'x-ratelimit-remaining': String(binding.remaining),
    'x-ratelimit-reset': String(Math.ceil(binding.resetAtMs / 1000)),
    'ratelimit-policy': windows.map((w) => `"${w.name}";q=${w.limit};w=${w.windowSeconds}`).join(', '),
    ratelimit: windows.map((w) => `"${w.name}";r=${w.remaining};t=${w.resetSeconds}`).join(', '),
  };
}

/** Says when the key expires, if that is soon. */
export function announceExpiry({ expiresAt }: ApiKey, reply: FastifyReply, now: number): void {
  if (expiresAt === null || expiresAt.getTime() - now > EXPIRY_NOTICE_MS) return;
  reply.header('x-api-key-expires', expiresAt.toISOString());
}

export interface AnnounceOptions {
  /** Without a trailing slash */
  readonly publicUrl: () => string;
  /** The clock, in Unix milliseconds */
  readonly now: () => number;
}

/** Says that the requested operation is deprecated, if it is. */
export function announceDeprecation(
  { admission: { target, error, rehearsal } }: FastifyRequest,
  reply: FastifyReply,
  { publicUrl, now }: AnnounceOptions,
): void {
  const { deprecation } = target;
  const { code } = (error ?? rehearsal ?? {}) as { readonly code?: string };
  if (deprecation !== undefined && !CODES_OF_MISSING.has(code))
    reply.headers(deprecationHeaders(deprecation, publicUrl(), now()));
}
