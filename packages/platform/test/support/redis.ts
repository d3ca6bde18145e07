export {
  canStartRedis,
  findRedis,
  RedisServer,
  startRedis,
} from '../../../limits/test/support/redis.js';
