import { REDIS_TIMEOUT_MS } from '../timeouts.js';
import { CircuitBreaker, type Log } from './circuit-breaker.js';
import type { LimitBackend } from './limit-store.js';
import { createRedisClient } from './redis-client.js';
import { probeRedis, RedisStore, toKey } from './redis-store.js';

export interface RedisBackendOptions {
  /** One: Redis or Valkey. Several: the nodes of a cluster. */
  readonly urls: readonly string[];
  /** The prefix of every key */
  readonly prefix: string;
  readonly log: Log;
  /** Called with what each command took, in seconds */
  readonly observe: (seconds: number) => void;
}

/** Redis or Valkey, which connects in the background, behind a circuit breaker. */
export function createRedisBackend({ urls, prefix, log, observe }: RedisBackendOptions): LimitBackend {
  const client = createRedisClient(urls);
  const breaker = new CircuitBreaker({
    name: 'Redis',
    variable: 'REDIS_URL',
    timeoutMs: REDIS_TIMEOUT_MS,
    probe: (key) => probeRedis(client, key),
    probeKey: toKey(prefix, ''),
    reconnect() {
      if (client.status === 'ready' || client.status === 'connect') client.disconnect(true);
    },
    log,
    observe,
  });
  client.on('error', (error: Error) => breaker.noteReason(error));
  client.on('ready', () => breaker.tryProbe());
  client.on('close', () => breaker.open(new Error('The connection was closed')));
  return {
    name: 'redis',
    get isAvailable() {
      return breaker.isClosed;
    },
    get epoch() {
      return breaker.epoch;
    },
    createStore: (options) =>
      new RedisStore({ ...options, client, breaker, keyPrefix: `${prefix}:${options.kind}` }),
    ready: (withinMs) => breaker.ready(withinMs),
    close() {
      breaker.dispose();
      client.disconnect();
    },
  };
}
