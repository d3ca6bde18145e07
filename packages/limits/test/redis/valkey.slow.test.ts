import { canStartRedis, until } from '@animal-store/limits/testing';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import {
  closeAll,
  consumeMany,
  countAllowed,
  node,
  onClose,
  reaches,
  server,
  subject,
} from '../support/limiter-nodes.js';
import { startCluster } from '../support/redis-cluster.js';
import { startSentinels } from '../support/redis-sentinel.js';

vi.stubEnv('TEST_REDIS_SERVER', 'valkey-server');
const hasRedis = canStartRedis();
afterAll(() => void vi.unstubAllEnvs());

afterEach(closeAll);

/** What several nodes together allow of requests that arrive at once */
async function countAllowedTogether(urls: string[], of = subject): Promise<number> {
  const nodes = await Promise.all([node(urls), node(urls), node(urls)]);
  const requests = nodes.flatMap(({ limiter }) => Array.from({ length: 100 }, () => limiter.consume(of, 1)));
  const allowed = countAllowed(await Promise.all(requests));
  for (const { logged } of nodes) expect(logged).toEqual(['Limits are counted in Redis {}']);
  return allowed;
}

describe.skipIf(!hasRedis)('Valkey', () => {
  test('several nodes together allow exactly the limit', async () => {
    const { url } = await server();
    expect(await countAllowedTogether([url])).toBe(60);
  });

  test('a restart without its data: the next requests carry the counts of the node over', async () => {
    const valkey = await server();
    const { limiter } = await node([valkey.url]);
    await consumeMany(limiter, 40);
    await valkey.kill();
    await reaches(limiter, 'degraded');
    await valkey.run();
    await reaches(limiter, 'redis');
    expect(countAllowed(await consumeMany(limiter, 30))).toBe(20);
  });

  test('a cluster: several nodes together allow exactly the limit of each key', async () => {
    const cluster = await startCluster({ shards: 2 });
    onClose(() => cluster.close());
    const urls = cluster.servers.map(({ url }) => url);
    for (const id of ['a', 'b', 'c']) expect(await countAllowedTogether(urls, { ...subject, id })).toBe(60);
  });

  test('sentinels promote a replica: it counts again, from what the node knows', async () => {
    const setup = await startSentinels();
    onClose(() => setup.close());
    const { limiter } = await node([setup.url]);
    await consumeMany(limiter, 40);
    await setup.primary.kill();
    await reaches(limiter, 'degraded');
    await until(async () => (await setup.isPromoted()) || undefined);
    await reaches(limiter, 'redis');
    expect(countAllowed(await consumeMany(limiter, 30))).toBe(20);
  });
});
