import { type ClientContext, Cluster, Redis, type RedisOptions, type Result } from 'ioredis';
import { CONSUME_SCRIPT } from './redis-scripts.js';

declare module 'ioredis' {
  interface RedisCommander<Context extends ClientContext> {
    /** CONSUME_SCRIPT */
    consumeLimits(key: string, ...args: (string | number)[]): Result<number[], Context>;
  }
}

/** A single server or a cluster; the same commands on both. */
export type RedisClient = Redis | Cluster;

const RECONNECT_DELAY_MS = 500;
const SLOTS_REFRESH_INTERVAL_MS = 2_000;

/*
 * Everything that ioredis does to rescue a command is turned off. A limit is decided now, by Redis or else by the
 * memory of this process: a command that is sent late or twice would count a request a second time.
 */
const COMMON_OPTIONS = {
  enableAutoPipelining: true,
  enableOfflineQueue: false,
  scripts: { consumeLimits: { lua: CONSUME_SCRIPT, numberOfKeys: 1 } },
};

const CONNECTION_OPTIONS = {
  autoResendUnfulfilledCommands: false,
  // With 1, ioredis never settles the commands that a lost connection left unanswered, and its automatic pipeline waits
  // for them forever. With 0 they are all rejected when the connection closes.
  maxRetriesPerRequest: 0,
  // Attempts to reach a vanished host get no response, so they must time out: only a new one notices that it is back.
  connectTimeout: 1_000,
  disconnectTimeout: 100,
} satisfies RedisOptions;

/**
 * Opens Redis or Valkey: one URL is a single server; several are nodes of a cluster, for all of which the first URL
 * gives user, password and TLS. Returns at once and keeps trying to connect.
 */
export function createRedisClient(urls: readonly string[]): RedisClient {
  const [first = ''] = urls;
  if (urls.length === 1) {
    const retryStrategy = () => RECONNECT_DELAY_MS;
    return new Redis(first, { ...COMMON_OPTIONS, ...CONNECTION_OPTIONS, retryStrategy });
  }
  const { username, password, protocol } = new URL(first);
  return new Cluster([...urls], {
    ...COMMON_OPTIONS,
    clusterRetryStrategy: () => RECONNECT_DELAY_MS,
    clusterNodeRetryStrategy: () => RECONNECT_DELAY_MS,
    slotsRefreshInterval: SLOTS_REFRESH_INTERVAL_MS,
    redisOptions: {
      ...CONNECTION_OPTIONS,
      ...(username && { username: decodeURIComponent(username) }),
      ...(password && { password: decodeURIComponent(password) }),
      ...(protocol === 'rediss:' && { tls: {} }),
    },
  });
}
