import { Cluster, Redis } from 'ioredis';
import { consumeAlone, isConnected, openCluster } from './cluster.js';
import { endInOtherDatabase, type RedisConnectionOptions, SERVER_OPTIONS } from './options.js';
import { openPrimary } from './sentinels.js';
import { isSentinelUrl } from './urls.js';

/** A server, the primary that Sentinels name, or a cluster. Connects in the background, and keeps trying. */
export class RedisConnection {
  readonly #client: Redis | Cluster;
  readonly #sentinels: readonly Redis[] = [];

  constructor(options: RedisConnectionOptions) {
    const [url = '', ...others] = options.urls;
    if (isSentinelUrl(url)) {
      [this.#client, ...this.#sentinels] = openPrimary(options, () => this.reconnect());
    } else {
      this.#client = others.length > 0 ? openCluster(options) : openSingleServer(url, options);
    }
  }

  /** Whether a script can use keys of one slot only. */
  get isCluster(): boolean {
    return this.#client instanceof Cluster;
  }

  /** Whether scripts can run, in a cluster for whichever key. */
  get isReady(): boolean {
    return this.#client instanceof Cluster ? isConnected(this.#client) : this.#client.status === 'ready';
  }

  /** Runs CONSUME_SCRIPT. Rejects while there is no connection; may take long. */
  consumeLimits(keys: readonly string[], calls: string): Promise<string> {
    const client = this.#client;
    if (client instanceof Cluster) return consumeAlone(client, keys, calls);
    return client.consumeLimits(keys.length, ...keys, calls);
  }

  /** Replaces a connection that seems to be dead; does nothing while a new one is being made. */
  reconnect(): void {
    if (this.#client.status === 'ready' || this.#client.status === 'connect') this.#client.disconnect(true);
  }

  close(): void {
    for (const client of [this.#client, ...this.#sentinels]) client.disconnect();
  }
}

function openSingleServer(url: string, { onReady, onClose, onError }: RedisConnectionOptions): Redis {
  const server = new Redis(url, SERVER_OPTIONS);
  server.on('error', (error) => onError(endInOtherDatabase(server, error)));
  server.on('close', onClose);
  server.on('ready', onReady);
  return server;
}
