import { Cluster, Redis } from 'ioredis';
import { consumeAlone, isConnected, openCluster } from './cluster.js';
import { type RedisConnectionOptions, SERVER_OPTIONS } from './options.js';
import type { ScriptReply } from './scripts.js';
import { openPrimary } from './sentinels.js';
import { isSentinelUrl } from './urls.js';

/**
 * Redis or Valkey, a single server, the primary that Sentinels name, or a cluster: the same commands on all. Managed
 * clusters often have one address for all of their nodes, so a single URL is asked whether it leads to one.
 *
 * Connects in the background, and keeps trying.
 */
export class RedisConnection {
  readonly #options: RedisConnectionOptions;
  #client: Redis | Cluster;
  readonly #sentinels: readonly Redis[] = [];
  /** Whether it is known that `#client` is of the right kind */
  #isIdentified: boolean;
  #isClosed = false;

  constructor(options: RedisConnectionOptions) {
    this.#options = options;
    const [url = '', ...others] = options.urls;
    this.#isIdentified = others.length > 0 || isSentinelUrl(url);
    if (isSentinelUrl(url)) {
      [this.#client, ...this.#sentinels] = openPrimary(options, () => this.reconnect());
    } else {
      this.#client = others.length > 0 ? openCluster(options) : this.#openServer(url);
    }
  }

  /** Whether a script can use keys of one slot only. */
  get isCluster(): boolean {
    return this.#client instanceof Cluster;
  }

  /** Whether scripts can run, in a cluster for whichever key. */
  get isReady(): boolean {
    return this.#isIdentified && (!(this.#client instanceof Cluster) || isConnected(this.#client));
  }

  /** Runs CONSUME_SCRIPT. Rejects while there is no connection; may take long. */
  consumeLimits(keys: readonly string[], calls: string): Promise<ScriptReply[]> {
    const client = this.#client;
    if (client instanceof Cluster) return consumeAlone(client, keys, calls);
    return client.consumeLimits(keys.length, ...keys, calls);
  }

  /** Replaces a connection that seems to be dead; does nothing while a new one is being made. */
  reconnect(): void {
    if (this.#client.status === 'ready' || this.#client.status === 'connect') this.#client.disconnect(true);
  }

  close(): void {
    this.#isClosed = true;
    for (const client of [this.#client, ...this.#sentinels]) client.disconnect();
  }

  #openServer(url: string): Redis {
    const { onReady, onClose, onError } = this.#options;
    const server = new Redis(url, SERVER_OPTIONS);
    server.on('error', onError);
    server.on('close', onClose);
    server.on('ready', async () => {
      const isClusterNode = await readIsClusterNode(server, onError);
      if (this.#isClosed) return;
      this.#isIdentified = true;
      if (!isClusterNode) return onReady();
      server.off('close', onClose);
      server.disconnect();
      this.#client = openCluster(this.#options);
    });
    return server;
  }
}

/** False for a user who may not run INFO, too, which is reported: in a cluster nothing else works then. */
async function readIsClusterNode(server: Redis, onError: (error: Error) => void): Promise<boolean> {
  const info = await server.info('cluster').catch((error: Error) => {
    if (error.message.startsWith('NOPERM')) onError(error);
    return '';
  });
  return info.includes('cluster_enabled:1');
}
