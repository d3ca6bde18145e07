import { freePort, type RedisServer, startRedis, until } from '@animal-store/limits/testing';
import { Redis } from 'ioredis';

/** What the sentinels call the primary */
export const PRIMARY_NAME = 'limits.primary';

export interface SentinelOptions {
  /** Further flags of the primary and its replica */
  readonly flags?: readonly string[];
  /** What the primary requires of its replica and of the sentinels */
  readonly password?: string;
  /** Further lines in the configuration of each sentinel */
  readonly sentinelConfig?: readonly string[];
  /** The password that the sentinels require */
  readonly sentinelPassword?: string;
  /** TLS: clients connect to ports of their own, by the name localhost; those of `RedisServer.port` remain plain. */
  readonly tls?: readonly string[];
  /** The port that the sentinels name in place of the primary's, such as that of a relay */
  readonly announce?: (port: number) => Promise<number>;
}

export interface SentinelSetup {
  readonly primary: RedisServer;
  readonly replica: RedisServer;
  readonly sentinels: readonly RedisServer[];
  /** host:port,host:port,host:port, for clients */
  readonly hosts: string;
  /** redis+sentinel://host:port,host:port,host:port/name */
  readonly url: string;
  /** Whether all sentinels say that the replica is the primary now */
  isPromoted(): Promise<boolean>;
  /** Lets a sentinel start a failover while the primary is well. */
  failOver(): Promise<void>;
  close(): Promise<void>;
}

/** Starts a primary, a replica, and three sentinels that promote the replica when the primary is silent for 0.5 s. */
export async function startSentinels(options: SentinelOptions = {}): Promise<SentinelSetup> {
  const started: RedisServer[] = [];
  try {
    return await setUp(options, started);
  } catch (error) {
    await Promise.all(started.map((server) => server.close()));
    throw error;
  }
}

/** Adds each server to `started`, so that the caller can close them when something fails. */
async function setUp(options: SentinelOptions, started: RedisServer[]): Promise<SentinelSetup> {
  const { flags = [], password, sentinelConfig = [], sentinelPassword, tls, announce } = options;
  const host = tls ? 'localhost' : '127.0.0.1';
  const startServer = async (own: readonly string[], config?: string) => {
    const port = await freePort();
    const tlsFlags = tls ? ['--tls-port', `${port}`, '--tls-replication', 'yes', ...tls] : [];
    const server = await startRedis([...tlsFlags, ...own], config);
    if (!server) throw new Error('The server could be started a moment ago');
    started.push(server);
    return { server, port: tls ? port : server.port };
  };
  const common = ['--repl-diskless-sync-delay', '0', ...flags];
  const announced = tls ? ['--replica-announce-ip', host] : [];
  const primary = await startServer([...announced, ...common]);
  const replica = await startServer([...announced, '--replicaof', `${host} ${primary.port}`, ...common]);
  const replicaAdmin = connect(replica.server, password);
  await until(
    async () => (await replicaAdmin.info('replication')).includes('master_link_status:up') || undefined,
  );
  const named = (await announce?.(primary.port)) ?? primary.port;
  const config = [
    ...(tls ? ['sentinel resolve-hostnames yes', 'sentinel announce-hostnames yes'] : []),
    ...(tls ? [`sentinel announce-ip ${host}`] : []),
    `sentinel monitor ${PRIMARY_NAME} ${host} ${named} 2`,
    `sentinel down-after-milliseconds ${PRIMARY_NAME} 500`,
    `sentinel failover-timeout ${PRIMARY_NAME} 3000`,
    ...(password ? [`sentinel auth-pass ${PRIMARY_NAME} ${password}`] : []),
    ...(sentinelPassword ? [`requirepass ${sentinelPassword}`] : []),
    ...sentinelConfig,
  ].join('\n');
  const members = await Promise.all([0, 1, 2].map(() => startServer([], config)));
  const sentinels = members.map(({ server }) => server);
  const admins = sentinels.map((sentinel) => connect(sentinel, sentinelPassword));
  for (const admin of admins) {
    // They find each other sooner. Not at once, because one that has not heard of a promotion within 4 periods makes the
    // promoted server a replica again.
    await admin.call('SENTINEL', 'DEBUG', 'PUBLISH-PERIOD', '500', 'INFO-PERIOD', '500');
    await until(async () => {
      const status = `${await admin.call('INFO', 'sentinel')}`;
      return status.includes('slaves=1,sentinels=3') || undefined;
    });
  }
  const hosts = members.map(({ port }) => `${host}:${port}`).join(',');
  return {
    primary: primary.server,
    replica: replica.server,
    sentinels,
    hosts,
    url: `redis+sentinel://${hosts}/${PRIMARY_NAME}`,
    async isPromoted() {
      const ask = (admin: Redis) => admin.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', PRIMARY_NAME);
      const named = (await Promise.all(admins.map(ask))) as string[][];
      return named.every(([, port]) => port === `${replica.port}`);
    },
    async failOver() {
      await admins[0]?.call('SENTINEL', 'FAILOVER', PRIMARY_NAME);
    },
    async close() {
      for (const admin of [replicaAdmin, ...admins]) admin.disconnect();
      await Promise.all(started.map((server) => server.close()));
    },
  };
}

function connect({ url }: RedisServer, password: string | undefined): Redis {
  const client = new Redis(url, { ...(password && { password }) });
  client.on('error', () => {});
  return client;
}
