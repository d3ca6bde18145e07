import type { Decision } from './decision.js';

/**
 * The headers that tell a caller where it stands, for every answer under a limit.
 *
 * `X-RateLimit-*` are integers of the tighter window, `-Reset` in Unix seconds rounded up. `RateLimit-Policy` and
 * `RateLimit` follow draft-ietf-httpapi-ratelimit-headers (structured field lists, RFC 9651): quota `q`, window
 * `w` in seconds, remaining `r`, seconds until reset `t`. `Retry-After` belongs to the refusal, not to the state.
 */
export function limitHeaders(decision: Decision): Record<string, string> {
  const { windows, tighter } = decision;
  return {
    'X-RateLimit-Limit': String(tighter.limit),
    'X-RateLimit-Remaining': String(tighter.remaining),
    'X-RateLimit-Reset': String(Math.ceil(tighter.resetAtMs / 1000)),
    'RateLimit-Policy': windows.map((w) => `"${w.name}";q=${w.limit};w=${w.windowSeconds}`).join(', '),
    RateLimit: windows.map((w) => `"${w.name}";r=${w.remaining};t=${w.resetSeconds}`).join(', '),
  };
}
