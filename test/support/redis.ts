export {
  canStartRedis,
  findRedis,
  RedisServer,
  startRedis,
  type TestRedis,
} from '../../packages/limits/test/support/redis.js';
