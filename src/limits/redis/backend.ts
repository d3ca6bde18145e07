import { CircuitBreaker, type CircuitBreakerOptions } from '../circuit-breaker.js';
import type { LimitBackend } from '../limit-store.js';
import { RedisConnection } from './connection.js';
import type { RedisConnectionOptions } from './options.js';
import { RedisStore, toKey, tryRedis } from './store.js';

export interface RedisBackendOptions
  extends Pick<RedisConnectionOptions, 'urls'>,
    Pick<CircuitBreakerOptions, 'log' | 'observe'> {
  /** The prefix of every key */
  readonly prefix: string;
}

/** Redis or Valkey, which connects in the background, behind a circuit breaker. */
export function createRedisBackend({ urls, prefix, log, observe }: RedisBackendOptions): LimitBackend {
  const breaker = new CircuitBreaker({
    name: 'Redis',
    variable: 'REDIS_URL',
    trial: (key) => tryRedis(connection, key),
    trialKey: toKey(prefix, ''),
    reconnect: () => connection.reconnect(),
    log,
    observe,
  });
  const connection = new RedisConnection({
    urls,
    onReady: () => breaker.tryAgain(),
    onClose: () => breaker.open(new Error('The connection was closed')),
    onError: (error) => breaker.noteReason(error),
  });
  return {
    name: 'redis',
    get isAvailable() {
      return breaker.isClosed;
    },
    createStore: (options) =>
      new RedisStore({ ...options, connection, breaker, keyPrefix: `${prefix}:${options.kind}` }),
    ready: (withinMs) => breaker.ready(withinMs),
    close() {
      breaker.dispose();
      connection.close();
    },
  };
}
