export {
  canStartRedis,
  findRedis,
  RedisServer,
  startRedis,
} from '../../packages/limits/test/support/redis.js';
