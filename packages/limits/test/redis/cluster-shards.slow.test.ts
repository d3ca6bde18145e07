import { canStartRedis } from '@animal-store/limits/testing';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { createLimiter } from '../../src/index.js';
import { startCluster } from '../support/redis-cluster.js';
import { WINDOWS } from '../support/windows.js';

const SHARDS = 3;
const NODES = 4;
const KEYS = 3_000;
const LIMITS = { perMinute: NODES, perDay: 1_000 };

test.skipIf(!canStartRedis())(
  'the shards of a cluster share the decisions of several nodes evenly, and limits hold over all of them',
  async () => {
    const cluster = await startCluster({ shards: SHARDS });
    onTestFinished(() => cluster.close());
    const warnings: unknown[] = [];
    const redisUrls = cluster.servers.map(({ url }) => url);
    const open = () =>
      createLimiter({
        windows: WINDOWS,
        redisUrls,
        // A busy machine may be late. While a node counts in memory, it may allow more.
        commandTimeoutMs: 20_000,
        log: { info() {}, warn: (details, message) => void warnings.push([message, details]) },
      });
    const nodes = await Promise.all(Array.from({ length: NODES }, open));
    onTestFinished(async () => {
      await Promise.all(nodes.map((node) => node.close()));
    });
    const prefix = crypto.randomUUID();
    await Promise.all(nodes.map((node) => node.ready(5_000)));
    warnings.length = 0;
    const allowed: boolean[] = [];
    for (let round = 0; round < 2; round += 1) {
      for (let first = 0; first < KEYS; first += 100) {
        const calls = nodes.flatMap((node) =>
          Array.from({ length: 100 }, async (_, n) =>
            node.consume({ kind: 'key', id: `${prefix}-${first + n}`, limits: LIMITS }, 1),
          ),
        );
        allowed.push(...(await Promise.all(calls)).map(({ isAllowed }) => isAllowed));
      }
    }
    expect(warnings).toEqual([]);
    expect(allowed.filter(Boolean).length).toBe(KEYS * LIMITS.perMinute);
    const counts = await Promise.all(
      cluster.servers.map(async ({ url }) => {
        const client = new Redis(url);
        const info = await client.info('commandstats');
        client.disconnect();
        return Number(/cmdstat_evalsha:calls=(\d+)/.exec(info)?.[1]);
      }),
    );
    const share = counts.reduce((sum, count) => sum + count) / SHARDS;
    for (const count of counts) expect(Math.abs(count / share - 1)).toBeLessThan(0.1);
  },
);
