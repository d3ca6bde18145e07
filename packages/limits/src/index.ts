export { createLimiter, type Limiter, type LimiterOptions, MAX_SUBJECTS, type Subject } from './limiter.js';
export type { LimitStatus, Limits, RateLimitResult, WindowKind } from './rate-limit-result.js';
export { parseRedisUrls } from './redis/urls.js';
