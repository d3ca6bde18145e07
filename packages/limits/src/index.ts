export { createLimiter, type Limiter, MAX_SUBJECTS } from './limiter.js';
export type { LimiterOptions } from './limiter-options.js';
export type { LimitStatus, Limits, RateLimitResult, WindowKind } from './rate-limit-result.js';
export { parseRedisUrls } from './redis/urls.js';
export type { Subject } from './subject.js';
