import { type ClientContext, Cluster, Redis, type RedisOptions, type Result } from 'ioredis';
import { banScript, pardonScript, takeScript } from './redis-scripts.js';

declare module 'ioredis' {
  interface RedisCommander<Context extends ClientContext> {
    limitsTake(key: string, ...values: (string | number)[]): Result<number[], Context>;
    limitsBan(key: string, ...values: (string | number)[]): Result<number[], Context>;
    limitsPardon(key: string, ...values: (string | number)[]): Result<number, Context>;
  }
}

/** A single server or a cluster; the same commands on both. */
export type Client = Redis | Cluster;

const reconnectMs = 500;

/*
 * All that ioredis does to save a command is off. A limit is decided now, or else by the memory of this process; a
 * command that is sent late or twice would count a request that was decided without it.
 */
const common = {
  enableAutoPipelining: true,
  enableOfflineQueue: false,
  scripts: {
    limitsTake: { lua: takeScript, numberOfKeys: 1 },
    limitsBan: { lua: banScript, numberOfKeys: 1 },
    limitsPardon: { lua: pardonScript, numberOfKeys: 1 },
  },
};

const connection = {
  autoResendUnfulfilledCommands: false,
  // With 1, ioredis drops what a lost connection left unanswered without settling it, and its automatic pipeline
  // then waits for it for ever; with 0 all of that is rejected when the connection closes.
  maxRetriesPerRequest: 0,
  // A host that has vanished refuses nothing: only connecting anew finds it when it is back.
  connectTimeout: 1_000,
  disconnectTimeout: 100,
} satisfies RedisOptions;

/**
 * Opens Redis or Valkey: one URL is a single server, several are the first nodes of a cluster, whose user, password
 * and TLS are those of the first. Returns at once and connects for as long as it takes.
 */
export function openClient(urls: readonly string[]): Client {
  const [first = ''] = urls;
  if (urls.length === 1)
    return new Redis(first, { ...common, ...connection, retryStrategy: () => reconnectMs });
  const { username, password, protocol } = new URL(first);
  return new Cluster([...urls], {
    ...common,
    clusterRetryStrategy: () => reconnectMs,
    clusterNodeRetryStrategy: () => reconnectMs,
    slotsRefreshInterval: 2_000,
    redisOptions: {
      ...connection,
      ...(username && { username: decodeURIComponent(username) }),
      ...(password && { password: decodeURIComponent(password) }),
      ...(protocol === 'rediss:' && { tls: {} }),
    },
  });
}
