import { canStartRedis, type RedisServer, until } from '@animal-store/limits/testing';
import type { Redis } from 'ioredis';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { closeCluster, consumeAlone, openCluster } from '../../src/redis/cluster.js';
import { createConsumeScript } from '../../src/redis/scripts.js';
import {
  admin,
  closeAll,
  consumeDuring,
  countAllowed,
  node,
  onClose,
  reaches,
  server,
  subject,
} from '../support/limiter-nodes.js';
import { type ClusterOptions, type RedisCluster, startCluster } from '../support/redis-cluster.js';

const hasRedis = canStartRedis();

afterEach(closeAll);

async function cluster(options: ClusterOptions): Promise<RedisCluster> {
  const started = await startCluster(options);
  onClose(() => started.close());
  return started;
}

/** Six keys, which are in more than one shard. */
const SUBJECTS = ['a', 'b', 'c', 'd', 'e', 'f'].map((id) => ({ ...subject, id }));

describe.skipIf(!hasRedis)('a cluster', () => {
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
    for (const { binding } of await consumeEach()) expect(binding.remaining).toBe(57);
    expect(limiter.state).toBe('redis');
  });

  test('counts a request once whose connection is lost before the reply', async () => {
    const [shard] = (await cluster({ shards: 2 })).servers as [RedisServer];
    const script = createConsumeScript(['minute']);
    const client = openCluster([shard.url], { script, onReady() {}, onClose() {}, onError() {} });
    onClose(() => client.disconnect());
    // The key is in the first shard.
    const calls = JSON.stringify([[1, 0, [1, 60, 60_000, 0, 0]]]);
    await until(() => consumeAlone(client, ['bar'], calls).catch(() => undefined));
    shard.stall();
    const unanswered = consumeAlone(client, ['bar'], calls).catch(String);
    await new Promise(setImmediate);
    // What ioredis does with a node that has left the cluster
    const connections = client.nodes().filter(({ options }) => options.port === shard.port);
    for (const each of connections) each.disconnect();
    await until(() => connections.every(({ status }) => status === 'end') || undefined);
    shard.resume();
    expect(await unanswered).toBe('Error: Connection is closed.');
    const count = async () => Number(await admin(shard).hget('bar', 'minute'));
    await until(async () => (await count()) === 2 || undefined);
  });

  test('is left alone once its client is closed, also in the middle of asking which slots are where', async () => {
    const { servers } = await cluster({ shards: 2 });
    const script = createConsumeScript(['minute']);
    const urls = servers.map(({ url }) => url);
    const client = openCluster(urls, { script, onReady() {}, onClose() {}, onError() {} });
    await until(() => client.status === 'ready' || undefined);
    for (const server of servers) server.stall();
    const asks = vi.spyOn(client, 'refreshSlotsCache');
    await until(() => asks.mock.calls.length > 0 || undefined);
    closeCluster(client);
    // It is called after those that wait for the same answer.
    await new Promise<unknown>((resolve) => client.refreshSlotsCache(resolve));
    expect(client).toMatchObject({ slotsTimer: null });
  });

  test('is found by a single address that is given twice, and never degraded on the way, even if nothing answers there at first', async () => {
    const { servers } = await cluster({ shards: 3 });
    const [first] = servers;
    const urls = [first?.url ?? '', first?.url ?? ''];
    const present = await node(urls);
    for (const of of SUBJECTS) expect((await present.limiter.consume(of, 1)).binding.remaining).toBe(59);
    expect(present.logged).toEqual(['Limits are counted in Redis {}']);
    const held = await Promise.all(servers.map((shard) => admin(shard).dbsize()));
    expect(Math.min(...held)).toBeGreaterThan(0);
    await first?.kill();
    const { limiter } = await node(urls, false);
    await limiter.consume(subject, 1);
    expect(limiter.state).toBe('degraded');
    await first?.run();
    // The shards begin to serve one after the other.
    const countsInAll = async () => {
      for (const of of SUBJECTS) await limiter.consume(of, 1);
      return limiter.state === 'redis' || undefined;
    };
    await until(countsInAll);
  });

  test('of which one URL is given: memory decides, and the log says what to do', async () => {
    const [first] = (await cluster({ shards: 2 })).servers;
    const { limiter, logged } = await node([first?.url ?? ''], false);
    await until(async () => {
      for (const of of SUBJECTS) await limiter.consume(of, 1);
      return logged.find((line) => /MOVED .*REDIS_URL holds several URLs/.test(line));
    });
    expect(limiter.state).toBe('degraded');
  });

  test('whose primary is killed: counts again once its replica is promoted, and each node allows what it knew to be left at most', async () => {
    const { servers } = await cluster({ shards: 3, replicas: 1 });
    const urls = servers.slice(0, 3).map(({ url }) => url);
    const nodes = await Promise.all([node(urls), node(urls)]);
    const clients = servers.map(admin);
    const slot = Number(await clients[0]?.call('CLUSTER', 'KEYSLOT', subject.id));
    const shard = Math.floor((slot * 3) / 16_384);
    const [primary, replica] = [servers[shard] as RedisServer, clients[shard + 3] as Redis];
    for (let n = 0; n < 10; n += 1) {
      for (const { limiter } of nodes) await limiter.consume(subject, 1);
    }
    await primary.kill();
    const { allowed } = await consumeDuring(nodes, subject, async () => {
      await until(
        async () => (await replica.info('replication')).includes('role:master') || undefined,
        20_000,
      );
      await Promise.all(nodes.map(({ limiter }) => reaches(limiter, 'redis')));
    });
    // The first node does not know of the last request that the second one counted.
    expect(20 + allowed).toBeLessThanOrEqual(20 + 41 + 40);
    await until(async () => {
      for (const { limiter } of nodes) expect((await limiter.consume(subject, 1)).isAllowed).toBe(false);
      return (await replica.hget(`limits:key:{${subject.id}}`, 'minute')) === '60' || undefined;
    });
  });
});

describe.skipIf(!hasRedis)('REDIS_URL', () => {
  test('with several servers that are no cluster says so in the log', async () => {
    const { url } = await server();
    const { logged, limiter } = await node([url, url], false);
    await until(() => logged.find((line) => line.includes('cluster support disabled')));
    await expect(limiter.ready(0)).rejects.toThrow('cluster support disabled');
  });
});
