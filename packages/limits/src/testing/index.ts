/** What tests that need a Redis use. It works with any test runner, and is no part of a limiter. */

export { endWithTests } from './end-with-tests.js';
export { freePort } from './free-port.js';
export { hasProgram, isOnPath, MISSING_FOLDER, reportMissing } from './programs.js';
export { canStartRedis, findRedis, RedisServer, startRedis, type TestRedis } from './redis.js';
export { until } from './until.js';
