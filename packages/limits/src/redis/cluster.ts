import { Cluster, type Redis } from 'ioredis';
import {
  COMMON_OPTIONS,
  CONNECTION_OPTIONS,
  RECONNECT_DELAY_MS,
  type RedisClientOptions,
  toScripts,
} from './options.js';
import { readUser } from './urls.js';

/** How soon a cluster's client notices that a replica has taken the place of a primary that hangs. */
const SLOTS_REFRESH_INTERVAL_MS = 1_000;
/** The timeout of each node that is asked, because the first may be the one that hangs. */
const SLOTS_REFRESH_TIMEOUT_MS = 500;

/** How often a command is sent that a cluster redirects */
const MAX_ATTEMPTS = 5;

/** The message with which ioredis rejects every command on a lost connection. It hides the reason. */
const CLOSED_MESSAGE = 'Connection is closed.';

/** The first URL gives user, password and TLS for all nodes. */
export function openCluster(
  urls: readonly string[],
  { script, onReady, onClose, onError }: RedisClientOptions,
): Cluster {
  const url = new URL(urls[0] ?? '');
  const cluster: Cluster = new Cluster([...urls], {
    ...COMMON_OPTIONS,
    ...toScripts(script),
    // Commands on a lost connection may have been run.
    retryDelayOnFailover: 0,
    clusterRetryStrategy: () => RECONNECT_DELAY_MS,
    // Until a node has answered, ioredis begins again once the connections to all nodes have ended. A connection that is between
    // two attempts would never report its end.
    clusterNodeRetryStrategy: () => (cluster.status === 'ready' ? RECONNECT_DELAY_MS : null),
    slotsRefreshInterval: SLOTS_REFRESH_INTERVAL_MS,
    slotsRefreshTimeout: SLOTS_REFRESH_TIMEOUT_MS,
    // Certificates are for names, so names must not be replaced by their addresses.
    dnsLookup: (hostname, callback) => callback(null, hostname),
    redisOptions: {
      ...CONNECTION_OPTIONS,
      ...readUser(url),
      ...(url.protocol === 'rediss:' && { tls: {} }),
    },
  });
  const reportReady = () => {
    if (isConnected(cluster)) onReady();
  };
  // ioredis would connect to a node with the first command for it, and reject commands until then.
  cluster.on('+node', (node: Redis) => {
    node.on('ready', reportReady);
    node.connect().catch(() => {});
  });
  cluster.on('ready', reportReady);
  cluster.on('close', onClose);
  cluster.on('node error', (error: Error) => {
    if (error.message !== CLOSED_MESSAGE) onError(error);
  });
  // This error says that no node can be reached; those of the nodes say why.
  cluster.on('error', () => {});
  return cluster;
}

/** Ends a client for good. A refresh of the slots that is under way would start the timer of the next one afterwards. */
export function closeCluster(cluster: Cluster): void {
  cluster.disconnect();
  cluster.refreshSlotsCache(() => cluster.disconnect());
}

/** Whether there is a connection to each primary. */
export function isConnected(cluster: Cluster): boolean {
  return cluster.status === 'ready' && cluster.nodes('master').every(({ status }) => status === 'ready');
}

/**
 * Sends one command as a pipeline of its own. While slots move, ioredis follows the redirection of a pipeline only if all
 * of its commands are redirected to one place. The redirection of a command outside of a pipeline makes ioredis expect
 * all slots next to the moved one in the new place, too. After an ASK, it follows no second redirection. A redirected
 * command has not been run, so it may be sent again.
 */
export async function consumeAlone(
  cluster: Cluster,
  keys: readonly string[],
  calls: string,
): Promise<string> {
  for (let attempt = 1; ; attempt += 1) {
    const results = await cluster
      .pipeline()
      .consumeLimits(keys.length, ...keys, calls)
      .exec();
    const [error, replies] = results?.[0] ?? [];
    if (!error) return replies as string;
    if (attempt === MAX_ATTEMPTS || !/^(?:MOVED|ASK) /.test(error.message)) throw error;
  }
}
