import { canStartRedis, type RedisServer, until } from '@animal-store/limits/testing';
import { afterEach, describe, expect, test } from 'vitest';
import {
  admin,
  closeAll,
  consumeDuring,
  consumeMany,
  countAllowed,
  type Node,
  node,
  onClose,
  reaches,
  server,
  subject,
} from '../support/limiter-nodes.js';
import {
  PRIMARY_NAME,
  type SentinelOptions,
  type SentinelSetup,
  startSentinels,
} from '../support/redis-sentinel.js';

const hasRedis = canStartRedis();

afterEach(closeAll);

async function sentinels(options?: SentinelOptions): Promise<SentinelSetup> {
  const setup = await startSentinels(options);
  onClose(() => setup.close());
  return setup;
}

async function readCount(of: RedisServer): Promise<number> {
  return Number(await admin(of).hget(`limits:key:{${subject.id}}`, 'minute'));
}

/** Requests of the node are counted in this server. */
async function isConnected(redis: RedisServer, { limiter }: Node): Promise<void> {
  const other = { ...subject, id: `of-node-${Math.random()}` };
  await until(async () => {
    await limiter.consume(other, 1);
    return (await admin(redis).exists(`limits:key:{${other.id}}`)) === 1 || undefined;
  });
}

/** Two connections wait for announcements of this sentinel. */
async function isWatchedByTwo(sentinel: RedisServer): Promise<void> {
  const client = admin(sentinel);
  await until(async () => `${await client.client('LIST')}`.match(/ sub=1 /g)?.length === 2 || undefined);
}

describe.skipIf(!hasRedis)('sentinels', () => {
  test('name the primary, on which several nodes together allow exactly the limit', async () => {
    const { url, primary } = await sentinels();
    const nodes = await Promise.all([node([url]), node([url])]);
    const requests = nodes.flatMap(({ limiter }) =>
      Array.from({ length: 200 }, () => limiter.consume(subject, 1)),
    );
    expect(countAllowed(await Promise.all(requests))).toBe(60);
    expect(await readCount(primary)).toBe(60);
    expect(nodes[0]?.logged).toEqual(['Limits are counted in Redis {}']);
  });

  test.each([
    { fault: 'killed', cause: (setup: SentinelSetup) => setup.primary.kill() },
    { fault: 'stalled', cause: async (setup: SentinelSetup) => setup.primary.stall() },
    { fault: 'replaced while it is well', cause: (setup: SentinelSetup) => setup.failOver() },
  ])(
    'whose primary is $fault: back of the promotion, and each node allows what it knew to be left at most',
    async ({ cause }) => {
      const setup = await sentinels();
      const nodes = await Promise.all([node([setup.url]), node([setup.url])]);
      for (let n = 0; n < 10; n += 1) {
        for (const { limiter } of nodes) await limiter.consume(subject, 1);
      }
      await cause(setup);
      const { allowed } = await consumeDuring(nodes, subject, async () => {
        await until(async () => (await setup.isPromoted()) || undefined);
        await Promise.all(nodes.map((of) => isConnected(setup.replica, of)));
        setup.primary.resume();
        await Promise.all(nodes.map((of) => isConnected(setup.replica, of)));
      });
      // The first node does not know of the last request that the second one counted.
      expect(20 + allowed).toBeLessThanOrEqual(20 + 41 + 40);
      await until(async () => {
        await nodes[0]?.limiter.consume(subject, 1);
        return (await readCount(setup.replica)) === 60 || undefined;
      });
    },
  );

  test('that are missing at the start, hang, or are ordinary servers: memory decides until one knows the primary', async () => {
    const setup = await sentinels();
    const ordinary = await server();
    setup.sentinels[0]?.stall();
    for (const sentinel of setup.sentinels.slice(1)) await sentinel.kill();
    const { limiter, logged } = await node([setup.url.replace('//', `//127.0.0.1:${ordinary.port},`)], false);
    expect(countAllowed(await consumeMany(limiter, 70))).toBe(60);
    await until(() => logged.find((line) => /sentinel 127\.0\.0\.1:\d+: connect ECONNREFUSED/.test(line)));
    await setup.sentinels[2]?.run();
    await reaches(limiter, 'redis');
    expect((await limiter.consume(subject, 1)).isAllowed).toBe(false);
    expect(await readCount(setup.primary)).toBe(60);
    expect(logged.join()).not.toContain('All sentinels are unreachable');
  });

  test('that do not know the name: memory decides, and the log says so', async () => {
    const setup = await sentinels();
    const { limiter, logged } = await node([setup.url.replace(PRIMARY_NAME, 'other')], false);
    const reason = /sentinel 127\.0\.0\.1:\d+ knows no primary of the name other/;
    await until(() => logged.find((line) => reason.test(line)));
    await expect(limiter.ready(0)).rejects.toThrow(reason);
    expect(countAllowed(await consumeMany(limiter, 70))).toBe(60);
    expect(limiter.state).toBe('degraded');
  });

  test('that announce a promotion late, or one of another primary: nodes count in the primary all the time', async () => {
    const setup = await sentinels();
    const announcing = await server();
    const publisher = admin(announcing);
    const { limiter, logged } = await node([
      setup.url.replace(/(?=\/[^/]+$)/, `,127.0.0.1:${announcing.port}`),
    ]);
    const before = [...logged];
    const announcement = `${PRIMARY_NAME} 127.0.0.1 1 127.0.0.1 ${setup.primary.port}`;
    const announce = () => publisher.publish('+switch-master', announcement);
    await until(async () => (await announce()) === 1 || undefined);
    for (let n = 0; n < 20; n += 1) {
      await announce();
      await publisher.publish('+switch-master', 'other.primary 127.0.0.1 1 127.0.0.1 2');
      await limiter.consume(subject, 1);
    }
    expect(await readCount(setup.primary)).toBe(20);
    expect(logged).toEqual(before);
  });

  test('may all be restarted: nothing changes, and then the nodes leave even a primary that cannot be demoted', async () => {
    const setup = await sentinels();
    const nodes = await Promise.all([node([setup.url]), node([setup.url])]);
    const before = nodes.map(({ logged }) => [...logged]);
    await Promise.all(setup.sentinels.map((sentinel) => sentinel.kill()));
    for (const { limiter } of nodes) await consumeMany(limiter, 20);
    for (const sentinel of setup.sentinels) await sentinel.run();
    await Promise.all(setup.sentinels.map(isWatchedByTwo));
    expect(await readCount(setup.primary)).toBe(40);
    expect(nodes.map(({ logged }) => logged)).toEqual(before);
    // The sentinels may no longer change it, nor close its connections: it goes on as a primary.
    await admin(setup.primary).call('ACL', 'SETUSER', 'default', '-replicaof', '-slaveof', '-client|kill');
    await setup.failOver();
    await until(async () => (await setup.isPromoted()) || undefined);
    await Promise.all(nodes.map((of) => isConnected(setup.replica, of)));
    const results = await Promise.all(nodes.map(({ limiter }) => consumeMany(limiter, 30)));
    expect(countAllowed(results.flat())).toBe(20);
    expect(await readCount(setup.primary)).toBe(40);
    expect(await admin(setup.primary).info('replication')).toContain('role:master');
  });
});
