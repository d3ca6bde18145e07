import { freePort, type RedisServer, startRedis, until } from '@animal-store/limits/testing';
import { Redis } from 'ioredis';

export interface ClusterOptions {
  readonly shards: number;
  /** Replicas of each shard. Default 0 */
  readonly replicas?: number;
  /** Further flags of each server */
  readonly flags?: readonly string[];
  /** What the flags require from clients */
  readonly password?: string;
  /** TLS: clients and nodes connect to ports of their own; those of `RedisServer.port` remain plain. */
  readonly tls?: boolean;
  /** The port that clients are told in place of a server's, such as that of a relay. Only with TLS */
  readonly announce?: (port: number) => Promise<number>;
}

export interface RedisCluster {
  /** The primaries, then the replicas */
  readonly servers: readonly RedisServer[];
  /** The port at which clients reach each server */
  readonly ports: readonly number[];
  close(): Promise<void>;
}

/** Starts servers that share the slots of a cluster. */
export async function startCluster(options: ClusterOptions): Promise<RedisCluster> {
  const { shards, replicas = 0, flags = [], password, tls = false, announce } = options;
  const members = await Promise.all(
    Array.from({ length: shards * (1 + replicas) }, async () => {
      const [busPort, tlsPort] = [await freePort(), await freePort()];
      const own = ['--cluster-enabled', 'yes', '--cluster-port', `${busPort}`, ...flags];
      if (tls) own.push('--tls-port', `${tlsPort}`, '--tls-cluster', 'yes');
      const announced = await announce?.(tlsPort);
      if (announced !== undefined) own.push('--cluster-announce-tls-port', `${announced}`);
      const server = await startRedis([
        '--cluster-node-timeout',
        '2000',
        '--repl-diskless-sync-delay',
        '0',
        ...own,
      ]);
      if (!server) throw new Error('The server could be started a moment ago');
      const admin = new Redis(server.url, { ...(password && { password }) });
      admin.on('error', () => {});
      const port = tls ? tlsPort : server.port;
      return { server, admin, busPort, port, clientPort: announced ?? port };
    }),
  );
  const admins = members.map(({ admin }) => admin);
  const [first] = admins;
  for (const { port, busPort } of members.slice(1)) {
    await first?.call('CLUSTER', 'MEET', '127.0.0.1', `${port}`, `${busPort}`);
  }
  for (const admin of admins) {
    await reports(admin, `cluster_known_nodes:${members.length}`);
  }
  const primaries = admins.slice(0, shards);
  for (const [index, admin] of primaries.entries()) {
    const slots = [index, index + 1].map((n) => Math.round((n * 16_384) / shards)) as [number, number];
    await admin.call('CLUSTER', 'ADDSLOTSRANGE', `${slots[0]}`, `${slots[1] - 1}`);
  }
  for (const [index, admin] of admins.slice(shards).entries()) {
    await admin.call('CLUSTER', 'REPLICATE', `${await primaries[index % shards]?.call('CLUSTER', 'MYID')}`);
    await until(
      async () => (await admin.info('replication')).includes('master_link_status:up') || undefined,
      15_000,
    );
  }
  for (const admin of admins) {
    await reports(admin, 'cluster_slots_ok:16384');
    await reports(admin, 'cluster_state:ok');
    admin.disconnect();
  }
  return {
    servers: members.map(({ server }) => server),
    ports: members.map(({ clientPort }) => clientPort),
    close: async () => {
      await Promise.all(members.map(({ server }) => server.close()));
    },
  };
}

/** Moves a slot while clients use it, as `redis-cli --cluster reshard` does. Returns how many keys were in it. */
export async function moveSlot(slot: number, from: Redis, to: Redis): Promise<number> {
  const [source, target] = await Promise.all([from, to].map((admin) => admin.call('CLUSTER', 'MYID')));
  const set = (admin: Redis, ...args: unknown[]) =>
    admin.call('CLUSTER', 'SETSLOT', slot, ...args.map(String));
  await set(to, 'IMPORTING', source);
  await set(from, 'MIGRATING', target);
  const { host = '', port = 0 } = to.options;
  let moved = 0;
  for (;;) {
    const keys = (await from.call('CLUSTER', 'GETKEYSINSLOT', slot, 1)) as string[];
    if (keys.length === 0) break;
    await from.call('MIGRATE', host, port, '', 0, 5_000, 'KEYS', ...keys);
    moved += keys.length;
  }
  await set(to, 'NODE', target);
  await set(from, 'NODE', target);
  return moved;
}

async function reports(admin: Redis, line: string): Promise<void> {
  await until(async () => (await admin.cluster('INFO')).includes(line) || undefined);
}
