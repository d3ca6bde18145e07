import { canStartRedis } from '@animal-store/limits/testing';
import type { Redis } from 'ioredis';
import { afterEach, describe, expect, test } from 'vitest';
import { admin, closeAll, type Node, node, onClose, subject } from '../support/limiter-nodes.js';
import { moveSlot, startCluster } from '../support/redis-cluster.js';

/** A busy machine may keep Redis from answering for longer than a request waits. Here only redirections are tested. */
const PATIENT = { commandTimeoutMs: 20_000 };

afterEach(closeAll);

describe.skipIf(!canStartRedis())('while a cluster is resharded under load', () => {
  test('several nodes allow exactly the limit, and never without Redis', async () => {
    const started = await startCluster({ shards: 2 });
    onClose(() => started.close());
    const { servers } = started;
    const urls = servers.map(({ url }) => url);
    const nodes = await Promise.all([1, 2].map(() => node(urls, true, PATIENT)));
    const [first, second] = servers.map(admin) as [Redis, Redis];
    const subjects = Array.from({ length: 100 }, (_, n) => ({ ...subject, id: `key-${n}` }));
    const slots = await Promise.all(subjects.map(({ id }) => first.call('CLUSTER', 'KEYSLOT', id)));
    let isMoving = true;
    const consume = async (of: typeof subject, { limiter }: Node) => {
      let allowed = 0;
      for (let n = 0; n < 40 || isMoving; n += 1) {
        if ((await limiter.consume(of, 1)).isAllowed) allowed += 1;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      return allowed;
    };
    const totals = subjects.map(async (of) => {
      const allowed = await Promise.all(nodes.map((on) => consume(of, on)));
      return allowed.reduce((sum, count) => sum + count, 0);
    });
    let moved = 0;
    // In one direction, as a cluster is emptied or filled: servers that give and take at once may disagree.
    const inFirst = slots.map(Number).filter((slot) => slot < 8_192);
    try {
      for (const slot of inFirst) moved += await moveSlot(slot, first, second);
    } finally {
      isMoving = false;
    }
    const allowed = await Promise.all(totals);
    for (const { logged } of nodes) expect(logged).toEqual(['Limits are counted in Redis {}']);
    expect([...new Set(allowed)]).toEqual([60]);
    expect(moved).toBeGreaterThanOrEqual(inFirst.length);
  });
});
