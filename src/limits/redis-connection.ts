import { type ClientContext, Cluster, Redis, type RedisOptions, type Result } from 'ioredis';
import { CONSUME_SCRIPT } from './redis-scripts.js';

declare module 'ioredis' {
  interface RedisCommander<Context extends ClientContext> {
    /** CONSUME_SCRIPT */
    consumeLimits(key: string, ...args: number[]): Result<number[], Context>;
  }
}

export interface RedisConnectionOptions {
  /** One: Redis or Valkey, or a node of a cluster. Several: nodes of a cluster. */
  readonly urls: readonly string[];
  readonly onReady: () => void;
  readonly onClose: () => void;
  /** Called with what prevents or breaks a connection, to one of the nodes or to all of them */
  readonly onError: (error: Error) => void;
}

const RECONNECT_DELAY_MS = 200;
/** How soon a cluster's client notices that a replica has taken the place of a primary that hangs. */
const SLOTS_REFRESH_INTERVAL_MS = 1_000;
/** For each node that is asked: the first one may be the one that hangs. */
const SLOTS_REFRESH_TIMEOUT_MS = 500;

/** What ioredis says of every command that a lost connection takes along. It hides the reason. */
const CLOSED_MESSAGE = 'Connection is closed.';

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
 * Redis or Valkey, a single server or a cluster: the same commands on both. Managed clusters often have one address for
 * all of their nodes, so a single URL is asked which of the two it leads to.
 *
 * Connects in the background, and keeps trying.
 */
export class RedisConnection {
  readonly #options: RedisConnectionOptions;
  #client: Redis | Cluster;
  /** Whether it is known that `#client` is of the right kind */
  #isIdentified: boolean;
  #isClosed = false;

  constructor(options: RedisConnectionOptions) {
    this.#options = options;
    this.#isIdentified = options.urls.length > 1;
    this.#client = this.#isIdentified ? this.#openCluster() : this.#openServer();
  }

  /** Runs CONSUME_SCRIPT. Rejects while there is no connection; may take long. */
  consumeLimits(key: string, args: readonly number[]): Promise<number[]> {
    if (!this.#isIdentified) return Promise.reject(new Error('There is no connection yet'));
    return this.#client.consumeLimits(key, ...args);
  }

  /** Replaces a connection that seems to be dead; does nothing while a new one is being made. */
  reconnect(): void {
    if (this.#client.status === 'ready' || this.#client.status === 'connect') this.#client.disconnect(true);
  }

  close(): void {
    this.#isClosed = true;
    this.#client.disconnect();
  }

  #openServer(): Redis {
    const { urls, onReady, onClose, onError } = this.#options;
    const retryStrategy = () => RECONNECT_DELAY_MS;
    const server = new Redis(urls[0] ?? '', { ...COMMON_OPTIONS, ...CONNECTION_OPTIONS, retryStrategy });
    server.on('error', onError);
    server.on('close', onClose);
    server.on('ready', async () => {
      const isClusterNode = await readIsClusterNode(server);
      if (this.#isClosed) return;
      this.#isIdentified = true;
      if (!isClusterNode) return onReady();
      server.off('close', onClose);
      server.disconnect();
      this.#client = this.#openCluster();
    });
    return server;
  }

  /** The first URL gives user, password and TLS for all nodes. */
  #openCluster(): Cluster {
    const { urls, onReady, onClose, onError } = this.#options;
    const { username, password, protocol } = new URL(urls[0] ?? '');
    const cluster = new Cluster([...urls], {
      ...COMMON_OPTIONS,
      clusterRetryStrategy: () => RECONNECT_DELAY_MS,
      clusterNodeRetryStrategy: () => RECONNECT_DELAY_MS,
      slotsRefreshInterval: SLOTS_REFRESH_INTERVAL_MS,
      slotsRefreshTimeout: SLOTS_REFRESH_TIMEOUT_MS,
      // Certificates are for names, so names must not be replaced by their addresses.
      dnsLookup: (hostname, callback) => callback(null, hostname),
      redisOptions: {
        ...CONNECTION_OPTIONS,
        ...(username && { username: decodeURIComponent(username) }),
        ...(password && { password: decodeURIComponent(password) }),
        ...(protocol === 'rediss:' && { tls: {} }),
      },
    });
    cluster.on('ready', onReady);
    cluster.on('close', onClose);
    cluster.on('node error', (error: Error) => {
      if (error.message !== CLOSED_MESSAGE) onError(error);
    });
    cluster.on('error', () => findErrors(cluster, onError));
    return cluster;
  }
}

/** False for a user who may not run INFO, too. */
async function readIsClusterNode(server: Redis): Promise<boolean> {
  const info = await server.info('cluster').catch(() => '');
  return info.includes('cluster_enabled:1');
}

/**
 * Finds out why no node of a cluster can be reached. The connections on which Cluster looks for its nodes keep the
 * reason to themselves.
 */
function findErrors(cluster: Cluster, onError: (error: Error) => void): void {
  for (const node of cluster.nodes()) {
    const attempt = node.duplicate({ lazyConnect: false, retryStrategy: () => null });
    attempt.on('error', onError);
    attempt.on('ready', () => attempt.disconnect());
  }
}
