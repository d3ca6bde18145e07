import { afterEach, describe, expect, test } from 'vitest';
import {
  admin,
  closeAll,
  countAllowed,
  node,
  onClose,
  reaches,
  server,
  subject,
} from '../support/limiter-nodes.js';
import { type RedisServer, startRedis, until } from '../support/redis.js';
import { type ClusterOptions, type RedisCluster, startCluster } from '../support/redis-cluster.js';

const probe = await startRedis();
await probe?.close();

afterEach(closeAll);

async function cluster(options: ClusterOptions): Promise<RedisCluster> {
  const started = await startCluster(options);
  onClose(() => started.close());
  return started;
}

/** Six keys, which are in more than one shard. */
const SUBJECTS = ['a', 'b', 'c', 'd', 'e', 'f'].map((id) => ({ ...subject, id }));

describe.skipIf(!probe)('a cluster', () => {
  test('counts exactly, for several nodes, whichever shard a key is in', async () => {
    const { servers } = await cluster({ shards: 2 });
    const urls = servers.map(({ url }) => url);
    const nodes = await Promise.all([node(urls), node(urls)]);
    for (const of of SUBJECTS) {
      const requests = nodes.flatMap(({ limiter }) =>
        Array.from({ length: 100 }, () => limiter.consume(of, 1)),
      );
      expect(countAllowed(await Promise.all(requests))).toBe(60);
    }
    const held = await Promise.all(servers.map((shard) => admin(shard).dbsize()));
    expect(Math.min(...held)).toBeGreaterThan(0);
    expect(nodes.map(({ limiter }) => limiter.state)).toEqual(['redis', 'redis']);
  });

  test('with a stalled shard is replaced by memory until the shard is back', async () => {
    const { servers } = await cluster({ shards: 2 });
    const { limiter } = await node(servers.map(({ url }) => url));
    const consumeEach = () => Promise.all(SUBJECTS.map((of) => limiter.consume(of, 1)));
    await consumeEach();
    servers[1]?.stall();
    await consumeEach();
    expect(limiter.state).toBe('degraded');
    servers[1]?.resume();
    await reaches(limiter, 'redis');
    for (const { tighter } of await consumeEach()) expect(tighter.remaining).toBe(57);
    expect(limiter.state).toBe('redis');
  });

  test('is recognized behind a single URL, and never degraded on the way', async () => {
    const { servers } = await cluster({ shards: 3 });
    const { limiter, logged } = await node([servers[0]?.url ?? '']);
    for (const of of SUBJECTS) expect((await limiter.consume(of, 1)).tighter.remaining).toBe(59);
    expect(logged).toEqual(['Limits are counted in Redis {}']);
    const held = await Promise.all(servers.map((shard) => admin(shard).dbsize()));
    expect(Math.min(...held)).toBeGreaterThan(0);
  });

  test('is recognized behind a single URL at which nothing answered at first', async () => {
    const { servers } = await cluster({ shards: 3 });
    const [first] = servers;
    await first?.kill();
    const { limiter } = await node([first?.url ?? ''], false);
    await limiter.consume(subject, 1);
    expect(limiter.state).toBe('degraded');
    await first?.run();
    await until(() => (limiter.state === 'redis' ? true : null), 15_000);
    for (const of of SUBJECTS) await limiter.consume(of, 1);
    expect(limiter.state).toBe('redis');
  });

  test('whose primary is killed counts again within 5 s of the promotion of its replica', async () => {
    const { servers } = await cluster({ shards: 3, replicas: 1 });
    const { limiter } = await node(servers.slice(0, 3).map(({ url }) => url));
    const [primary, , , replica] = servers;
    const unlimited = SUBJECTS.map((of) => ({ ...of, limits: { perMinute: 1e6, perDay: 1e6 } }));
    const consumeEach = () => Promise.all(unlimited.map((of) => limiter.consume(of, 1)));
    const client = admin(replica as RedisServer);
    await primary?.kill();
    await until(async () => {
      await consumeEach();
      return (await client.info('replication')).includes('role:master') || null;
    }, 20_000);
    await reaches(limiter, 'redis');
    await consumeEach();
    expect(limiter.state).toBe('redis');
  });
});

describe.skipIf(!probe)('REDIS_URL', () => {
  test('with several servers that are no cluster says so in the log', async () => {
    const { url } = await server();
    const { logged, limiter } = await node([url, url], false);
    await until(() => logged.find((line) => line.includes('cluster support disabled')) ?? null);
    await expect(limiter.ready(0)).rejects.toThrow('cluster support disabled');
  });
});
