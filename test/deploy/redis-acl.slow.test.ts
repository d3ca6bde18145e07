import { readFileSync } from 'node:fs';
import { canStartRedis } from '@animal-store/limits/testing';
import { until } from '@animal-store/platform/testing';
import type { Redis } from 'ioredis';
import { afterEach, describe, expect, test } from 'vitest';
import {
  admin,
  closeAll,
  consumeMany,
  countAllowed,
  type Node,
  node,
  onClose,
  reaches,
  server,
  subject,
} from '../../packages/limits/test/support/limiter-nodes.js';
import { startCluster } from '../../packages/limits/test/support/redis-cluster.js';
import { startSentinels } from '../../packages/limits/test/support/redis-sentinel.js';

const hasRedis = canStartRedis();

afterEach(closeAll);

/** The commands of docs/configuration.md that create the users, in its order: of Redis, and of sentinels */
const [DATA_USER = [], SENTINEL_USER = []] = [
  ...readFileSync('docs/configuration.md', 'utf8').matchAll(/^ *ACL (SETUSER animal-store .*)$/gm),
].map(([, command = '']) => command.replace('PASSWORD', 'secret').split(' '));

const RIGHTS = DATA_USER.filter((word) => /^[+~]/.test(word));
/** Used to find the nodes of a cluster, not to count */
const CLUSTER_RIGHTS = ['+cluster|slots'];

/** Creates the user as documented, or without one of its rights. */
async function restrict(client: Redis, user: readonly string[], without?: string): Promise<void> {
  await client.call('ACL', ...user.filter((word) => word !== without));
}

const withUser = (url: string) => url.replace('//', '//animal-store:secret@');

/** A cluster, each of whose servers has the user. */
async function startRestrictedCluster(without?: string): Promise<string[]> {
  const cluster = await startCluster({ shards: 2 });
  onClose(() => cluster.close());
  for (const shard of cluster.servers) await restrict(admin(shard), DATA_USER, without);
  return cluster.servers.map(({ url }) => withUser(url));
}

async function isRefused({ limiter, logged }: Node, reason: RegExp): Promise<void> {
  await until(() => logged.find((line) => reason.test(line)));
  expect(countAllowed(await consumeMany(limiter, 70))).toBe(60);
  expect(limiter.state).toBe('degraded');
  expect(logged.join()).not.toContain('secret');
}

describe.skipIf(!hasRedis)('the documented user', () => {
  test('of a single server: requests are counted, read, and counted again after a restart', async () => {
    const redis = await server();
    await restrict(admin(redis), DATA_USER);
    const { limiter, logged } = await node([withUser(redis.url)]);
    await consumeMany(limiter, 40);
    await admin(redis).script('FLUSH');
    await consumeMany(limiter, 5);
    expect(logged).toEqual(['Limits are counted in Redis {}']);
    const reader = await node([withUser(redis.url)]);
    expect((await reader.limiter.read(subject, 0)).binding.remaining).toBe(15);
    await redis.kill();
    await reaches(limiter, 'degraded');
    await redis.run();
    await restrict(admin(redis), DATA_USER);
    await reaches(limiter, 'redis');
    expect(countAllowed(await consumeMany(limiter, 30))).toBe(15);
  });

  test('of a cluster: it is found by one address and by several', async () => {
    const urls = await startRestrictedCluster();
    for (const reachedBy of [urls, urls.slice(0, 1).flatMap((url) => [url, url])]) {
      const { limiter, logged } = await node(reachedBy);
      for (const id of ['a', 'b', 'c', 'd', 'e', 'f']) await limiter.consume({ ...subject, id }, 1);
      expect(limiter.state).toBe('redis');
      expect(logged).toEqual(['Limits are counted in Redis {}']);
    }
  });

  test('of sentinels, which differs from that of their primary: a promotion is followed', async () => {
    const setup = await startSentinels();
    onClose(() => setup.close());
    for (const redis of [setup.primary, setup.replica]) await restrict(admin(redis), DATA_USER);
    for (const sentinel of setup.sentinels) await restrict(admin(sentinel), SENTINEL_USER);
    const query = '?sentinelUsername=animal-store&sentinelPassword=secret';
    const { limiter, logged } = await node([withUser(setup.url) + query]);
    await consumeMany(limiter, 40);
    expect(logged).toEqual(['Limits are counted in Redis {}']);
    await setup.primary.kill();
    await reaches(limiter, 'degraded');
    await until(async () => (await setup.isPromoted()) || undefined);
    await reaches(limiter, 'redis');
    expect(countAllowed(await consumeMany(limiter, 30))).toBe(20);
    const client = admin(setup.replica);
    expect(await client.hget(`limits:key:{${subject.id}}`, 'minute')).toBe('60');
  });
});

describe.skipIf(!hasRedis)('no right of the documented user can be spared', () => {
  test.each(RIGHTS.filter((right) => !CLUSTER_RIGHTS.includes(right)))(
    'without %s memory decides, and the log says that it is missing',
    async (right) => {
      const redis = await server();
      await restrict(admin(redis), DATA_USER, right);
      const refused = await node([withUser(redis.url)], false);
      await isRefused(refused, /cannot be used.*(permission|can't run|NOPERM)/);
      await restrict(admin(redis), DATA_USER);
      await reaches(refused.limiter, 'redis');
    },
  );

  test('in a cluster, without +cluster|slots memory decides, and the log says why', async () => {
    const urls = await startRestrictedCluster('+cluster|slots');
    await isRefused(await node(urls, false), /cannot be used.*NOPERM/);
  });

  test.each(SENTINEL_USER.filter((word) => /^[+&]/.test(word)))(
    'of sentinels, without %s: the log says that it is missing',
    async (right) => {
      const setup = await startSentinels();
      onClose(() => setup.close());
      for (const sentinel of setup.sentinels) await restrict(admin(sentinel), SENTINEL_USER, right);
      const query = '?sentinelUsername=animal-store&sentinelPassword=secret';
      // The reasons are logged while Redis cannot be used.
      await setup.primary.kill();
      const { logged } = await node([setup.url + query], false);
      await until(() => logged.find((line) => /cannot be used.*NOPERM/.test(line)));
      expect(logged.join()).not.toContain('secret');
    },
  );
});
