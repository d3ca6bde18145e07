import { Cluster, Redis } from 'ioredis';
import { closeCluster, consumeAlone, isConnected, openCluster } from './cluster.js';
import {
  endInOtherDatabase,
  type RedisClientOptions,
  type RedisConnectionOptions,
  toScripts,
  toServerOptions,
} from './options.js';
import { openPrimary } from './sentinels.js';
import { isSentinelUrl } from './urls.js';

/** A server, the primary that Sentinels name, or a cluster. Connects in the background, and keeps trying. */
export class RedisConnection {
  readonly #options: RedisConnectionOptions;
  #urls: readonly string[];
  #client: Redis | Cluster;
  #sentinels: readonly Redis[] = [];

  constructor(options: RedisConnectionOptions) {
    this.#options = options;
    this.#urls = options.readUrls();
    [this.#client, ...this.#sentinels] = this.#open();
  }

  #open(): [Redis | Cluster, ...Redis[]] {
    const [url = '', ...others] = this.#urls;
    if (isSentinelUrl(url)) return openPrimary(url, this.#options, () => this.reconnect());
    return [
      others.length > 0 ? openCluster(this.#urls, this.#options) : openSingleServer(url, this.#options),
    ];
  }

  /** Whether a script can use keys of one slot only. */
  get isCluster(): boolean {
    return this.#client instanceof Cluster;
  }

  /** Whether scripts can run; in a cluster, for every key. */
  get isReady(): boolean {
    return this.#client instanceof Cluster ? isConnected(this.#client) : this.#client.status === 'ready';
  }

  /** Runs the script. Rejects while there is no connection; may take long. */
  consumeLimits(keys: readonly string[], calls: string): Promise<string> {
    const client = this.#client;
    if (client instanceof Cluster) return consumeAlone(client, keys, calls);
    return client.consumeLimits(keys.length, ...keys, calls);
  }

  /**
   * Replaces a connection that seems to be dead, or was made with an outdated password. Does nothing while a new one is
   * being made.
   */
  reconnect(): void {
    const { readUrls, onClose } = this.#options;
    const urls = readUrls();
    const isMade = this.#client.status === 'ready' || this.#client.status === 'connect';
    // The client of a cluster ends once its connections have ended, and a connection between two attempts never reports its end.
    if ((this.isCluster && isMade) || urls.join() !== this.#urls.join()) {
      // The event of the old client may come when the new one is in use.
      this.#client.off('close', onClose);
      this.close();
      onClose();
      this.#urls = urls;
      [this.#client, ...this.#sentinels] = this.#open();
    } else if (isMade) this.#client.disconnect(true);
  }

  close(): void {
    for (const client of [this.#client, ...this.#sentinels]) {
      if (client instanceof Cluster) closeCluster(client);
      else client.disconnect();
    }
  }
}

function openSingleServer(url: string, { script, onReady, onClose, onError }: RedisClientOptions): Redis {
  const server = new Redis(url, { ...toServerOptions(), ...toScripts(script) });
  server.on('error', (error) => onError(endInOtherDatabase(server, error)));
  server.on('close', onClose);
  server.on('ready', onReady);
  return server;
}
