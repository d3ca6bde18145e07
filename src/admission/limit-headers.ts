import type { RateLimitResult } from '../limits/rate-limit-result.js';

/**
 * The headers that tell callers their limits, for every response.
 *
 * `X-RateLimit-*` are integers of the binding window, `-Reset` in Unix seconds rounded up. `RateLimit-Policy` and
 * `RateLimit` follow draft-ietf-httpapi-ratelimit-headers (structured field lists, RFC 9651): quota `q`, window
 * `w` in seconds, remaining `r`, seconds until reset `t`. `Retry-After` belongs to the error of a denied request.
 */
export function limitHeaders({ windows, binding }: RateLimitResult): Record<string, string> {
  return {
    'X-RateLimit-Limit': String(binding.limit),
    'X-RateLimit-Remaining': String(binding.remaining),
    'X-RateLimit-Reset': String(Math.ceil(binding.resetAtMs / 1000)),
    'RateLimit-Policy': windows.map((w) => `"${w.name}";q=${w.limit};w=${w.windowSeconds}`).join(', '),
    RateLimit: windows.map((w) => `"${w.name}";r=${w.remaining};t=${w.resetSeconds}`).join(', '),
  };
}
