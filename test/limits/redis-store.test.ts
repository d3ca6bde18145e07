import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { Redis } from 'ioredis';
import { afterEach, describe, expect, test } from 'vitest';
import type { Decision } from '../../src/limits/decision.js';
import { createLimiter, type Limiter, type Subject } from '../../src/limits/limiter.js';
import { type RedisServer, startRedis, until } from '../support/redis.js';

const probe = await startRedis();
await probe?.close();

const closing: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
});

async function server(...flags: string[]): Promise<RedisServer> {
  const started = await startRedis(flags);
  if (!started) throw new Error('The server was there a moment ago');
  closing.push(() => started.close());
  return started;
}

/** A limiter as a process has it, what it logs, and how far its clock is ahead. */
interface Node {
  limiter: Limiter;
  logged: string[];
  clock: { aheadMs: number };
}

/** A node, once it counts in Redis unless told not to wait. */
async function node(urls: string[], waits = true): Promise<Node> {
  const clock = { aheadMs: 0 };
  const logged: string[] = [];
  const note = (details: object, message: string) => logged.push(`${message} ${JSON.stringify(details)}`);
  const log = { info: note, warn: note };
  const limiter = createLimiter({ redisUrls: urls, log, clock: () => Date.now() + clock.aheadMs });
  closing.push(() => limiter.close());
  if (waits) await reaches(limiter, 'redis');
  return { limiter, logged, clock };
}

/** Recovery within 5 s is the contract's own bound. */
async function reaches(limiter: Limiter, state: Limiter['state']): Promise<void> {
  await until(() => (limiter.state === state ? true : null), 5_000);
}

function admin({ url }: { url: string }): Redis {
  const client = new Redis(url);
  client.on('error', () => {});
  closing.push(() => client.disconnect());
  return client;
}

const subject: Subject = { kind: 'key', id: 'key-of-the-test', limits: { perMinute: 60, perDay: 1_000 } };

async function takeMany(limiter: Limiter, count: number, of = subject): Promise<Decision[]> {
  const decisions: Decision[] = [];
  for (let taken = 0; taken < count; taken += 1) decisions.push(await limiter.take(of, 1));
  return decisions;
}

function admittedOf(decisions: Decision[]): number {
  return decisions.filter(({ admitted }) => admitted).length;
}

/** How long a piece of work takes, in milliseconds. */
async function timed(work: () => unknown): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

describe.skipIf(!probe)('a Redis that fails', () => {
  test('stalled: memory takes over at once, forgets nothing, and Redis counts again when it is back', async () => {
    const redis = await server();
    const { limiter } = await node([redis.url]);
    expect(admittedOf(await takeMany(limiter, 40))).toBe(40);
    redis.stall();
    // The contract says 200 ms; the rest is for a busy machine.
    expect(await timed(() => limiter.take(subject, 1))).toBeLessThan(1_000);
    expect(limiter.state).toBe('degraded');
    // Waiting for Redis each time would take 15 s.
    expect(await timed(() => takeMany(limiter, 100, { ...subject, id: 'other' }))).toBeLessThan(1_000);
    expect(admittedOf(await takeMany(limiter, 30))).toBe(19);
    redis.resume();
    await reaches(limiter, 'redis');
    expect(admittedOf(await takeMany(limiter, 5))).toBe(0);
  });

  test('stalled with many requests under way: all are answered at once, and no more than the limit admitted', async () => {
    const redis = await server();
    const { limiter } = await node([redis.url]);
    redis.stall();
    const takes = Array.from({ length: 500 }, () => limiter.take(subject, 1));
    let decisions: Decision[] = [];
    const tookMs = await timed(async () => {
      decisions = await Promise.all(takes);
    });
    expect(tookMs).toBeLessThan(1_000);
    expect(admittedOf(decisions)).toBe(60);
  });

  test('a connection that is silently dead is replaced, and Redis counts again within 5 s', async () => {
    const redis = await server();
    const way = await deadEndingProxy(redis.port);
    const { limiter } = await node([`redis://127.0.0.1:${way.port}`]);
    way.deaden();
    await limiter.take(subject, 1);
    expect(limiter.state).toBe('degraded');
    await reaches(limiter, 'redis');
    expect((await limiter.take(subject, 1)).tighter.remaining).toBe(58);
  });

  test('killed and started again empty: what the node counted, and a ban, are given back to it', async () => {
    const redis = await server();
    const { limiter, clock } = await node([redis.url]);
    const banned: Subject = { ...subject, id: 'banned', limits: { perMinute: 5, perDay: 100 } };
    await takeMany(limiter, 11, banned);
    await takeMany(limiter, 40);
    await redis.kill();
    await reaches(limiter, 'degraded');
    expect(admittedOf(await takeMany(limiter, 10))).toBe(10);
    await redis.run();
    await reaches(limiter, 'redis');
    expect(admittedOf(await takeMany(limiter, 30))).toBe(10);
    const other = await node([redis.url]);
    const { windows } = await other.limiter.inspect(subject.id, subject.limits);
    expect(windows.map(({ remaining }) => remaining)).toEqual([0, 940]);
    clock.aheadMs += 2_000;
    await limiter.take(banned, 1);
    expect((await other.limiter.inspect(banned.id, banned.limits)).ban).not.toBeNull();
  });

  test('not there when the service starts: memory decides until it appears', async () => {
    const redis = await server();
    await redis.kill();
    const { limiter } = await node([redis.url], false);
    expect(limiter.state).toBe('degraded');
    expect(admittedOf(await takeMany(limiter, 70))).toBe(60);
    await expect(limiter.inspect(subject.id, subject.limits)).rejects.toThrow('Redis cannot be used');
    await redis.run();
    await reaches(limiter, 'redis');
    const { windows } = await limiter.inspect(subject.id, subject.limits);
    expect(windows.map(({ remaining }) => remaining)).toEqual([0, 940]);
  });

  test('a wrong password: memory decides, the log says why without the password, and a right one is noticed', async () => {
    const redis = await server('--requirepass', 'right');
    const url = redis.url.replace('//', '//:wrong-secret@');
    const { limiter, logged } = await node([url], false);
    expect(admittedOf(await takeMany(limiter, 70))).toBe(60);
    const said = await until(() => logged.find((line) => line.includes('WRONGPASS')) ?? null);
    expect(said).not.toContain('secret');
    await admin({ url: redis.url.replace('//', '//:right@') }).config('SET', 'requirepass', 'wrong-secret');
    await reaches(limiter, 'redis');
  });

  test.each([
    {
      fault: 'a replica that takes no writes',
      set: ['REPLICAOF', '127.0.0.1', '1'],
      unset: ['REPLICAOF', 'NO', 'ONE'],
    },
    {
      fault: 'a server without memory to spare',
      set: ['CONFIG', 'SET', 'maxmemory', '1'],
      unset: ['CONFIG', 'SET', 'maxmemory', '0'],
    },
    {
      fault: 'a user who may not run scripts',
      set: ['ACL', 'SETUSER', 'default', '-eval', '-evalsha'],
      unset: ['ACL', 'SETUSER', 'default', '+@all'],
    },
  ])('$fault: memory decides until that is mended', async ({ set, unset }) => {
    const redis = await server();
    const { limiter } = await node([redis.url]);
    const client = admin(redis);
    await takeMany(limiter, 40);
    await client.call(set[0] ?? '', set.slice(1));
    expect(admittedOf(await takeMany(limiter, 30))).toBe(20);
    expect(limiter.state).toBe('degraded');
    await client.call(unset[0] ?? '', unset.slice(1));
    await reaches(limiter, 'redis');
    expect((await limiter.take(subject, 1)).admitted).toBe(false);
  });

  test('a server that has lost the scripts is given them again, and no request is counted twice', async () => {
    const redis = await server();
    const { limiter } = await node([redis.url]);
    await takeMany(limiter, 10);
    await admin(redis).script('FLUSH');
    expect(admittedOf(await takeMany(limiter, 60))).toBe(50);
    expect(limiter.state).toBe('redis');
  });

  test('a stall of this process is not mistaken for one of Redis', async () => {
    const redis = await server();
    const { limiter } = await node([redis.url]);
    const decision = limiter.take(subject, 1);
    const startedMs = performance.now();
    while (performance.now() - startedMs < 500);
    expect((await decision).admitted).toBe(true);
    expect(limiter.state).toBe('redis');
  });

  test('a limiter that is closed still answers', async () => {
    const redis = await server();
    const { limiter } = await node([redis.url]);
    await takeMany(limiter, 59);
    await limiter.close();
    expect(admittedOf(await takeMany(limiter, 5))).toBe(1);
  });
});

describe.skipIf(!probe)('several nodes on one Redis', () => {
  test('together they admit exactly the limit', async () => {
    const redis = await server();
    const nodes = await Promise.all([node([redis.url]), node([redis.url]), node([redis.url])]);
    const takes = nodes.flatMap(({ limiter }) => Array.from({ length: 200 }, () => limiter.take(subject, 1)));
    expect(admittedOf(await Promise.all(takes))).toBe(60);
  });

  test('together they admit exactly the limit after a restart of Redis too', async () => {
    const redis = await server();
    const nodes = await Promise.all([node([redis.url]), node([redis.url])]);
    for (const { limiter } of nodes) await takeMany(limiter, 20);
    await redis.kill();
    await Promise.all(nodes.map(({ limiter }) => reaches(limiter, 'degraded')));
    await redis.run();
    await Promise.all(nodes.map(({ limiter }) => reaches(limiter, 'redis')));
    // The node that spoke last knows all 40; the other is told by Redis once that has been said.
    const decisions = [...(await takeMany(nodes[1].limiter, 30)), ...(await takeMany(nodes[0].limiter, 30))];
    expect(admittedOf(decisions)).toBe(20);
  });

  test('a ban by one is a ban by all, and two bans at one moment are one', async () => {
    const redis = await server();
    const [a, b] = await Promise.all([node([redis.url]), node([redis.url])]);
    const batch: Subject = { ...subject, limits: { perMinute: 10, perDay: 100 } };
    await Promise.all([a.limiter.take(batch, 20), b.limiter.take(batch, 20)]);
    for (const { limiter } of [a, b]) {
      expect((await limiter.take(batch, 1)).code).toBe('api_key_banned');
      expect(await limiter.inspect(batch.id, batch.limits)).toMatchObject({ nextBanSeconds: 600 });
    }
  });

  test('many refusals at one moment make one ban, told of once', async () => {
    const redis = await server();
    const { limiter, logged } = await node([redis.url]);
    const takes: (Decision | Promise<Decision>)[] = [];
    for (let wave = 0; wave < 10; wave += 1) {
      for (let taken = 0; taken < 100; taken += 1) takes.push(limiter.take(subject, 1));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all(takes);
    expect(await limiter.inspect(subject.id, subject.limits)).toMatchObject({ nextBanSeconds: 600 });
    expect(logged.filter((line) => line.includes('banned'))).toHaveLength(1);
  });

  test('a ban lifted by an operator is lifted on every node within 2 s', async () => {
    const redis = await server();
    const [a, b, operator] = await Promise.all([node([redis.url]), node([redis.url]), node([redis.url])]);
    const few: Subject = { ...subject, limits: { perMinute: 5, perDay: 100 } };
    await takeMany(a.limiter, 11, few);
    const codeOf = async (limiter: Limiter) => (await limiter.take(few, 1)).code;
    expect([await codeOf(a.limiter), await codeOf(b.limiter)]).toEqual(['api_key_banned', 'api_key_banned']);
    await operator.limiter.unban(few.id);
    for (const { limiter } of [a, b]) {
      await until(async () => ((await codeOf(limiter)) === 'rate_limit_exceeded' ? true : null), 2_000);
    }
  });

  test('the refusals that a node counted before an operator lifted a ban count no more', async () => {
    const redis = await server();
    const [a, operator] = await Promise.all([node([redis.url]), node([redis.url])]);
    const few: Subject = { ...subject, limits: { perMinute: 5, perDay: 100 } };
    await takeMany(a.limiter, 9, few);
    await operator.limiter.unban(few.id);
    a.clock.aheadMs += 2_000;
    const codes = (await takeMany(a.limiter, 6, few)).map(({ code }) => code);
    expect(codes).toEqual([...new Array(5).fill('rate_limit_exceeded'), 'api_key_banned']);
  });

  test('an admitted request is one command, a known refusal none, and nothing is kept for ever', async () => {
    const redis = await server();
    const { limiter } = await node([redis.url]);
    const client = admin(redis);
    await takeMany(limiter, 60);
    const calls = async () =>
      Number((await client.info('commandstats')).match(/cmdstat_evalsha:calls=(\d+)/)?.[1]);
    const before = await calls();
    await takeMany(limiter, 1, { ...subject, id: 'another' });
    expect((await calls()) - before).toBe(1);
    const decisions = await takeMany(limiter, 50);
    expect(admittedOf(decisions)).toBe(0);
    // One round trip told of the refusal; a second has passed on a slow machine if there was another.
    expect((await calls()) - before).toBeLessThanOrEqual(3);
    for (const name of await client.keys('*')) expect(await client.pttl(name)).toBeGreaterThan(0);
  });
});

describe.skipIf(!probe)('a cluster', () => {
  test('is counted in exactly, by several nodes, whichever shard a key is in', async () => {
    const shards = await cluster();
    const urls = shards.map(({ url }) => url);
    const nodes = await Promise.all([node(urls), node(urls)]);
    for (const id of ['a', 'b', 'c', 'd', 'e', 'f']) {
      const takes = nodes.flatMap(({ limiter }) =>
        Array.from({ length: 100 }, () => limiter.take({ ...subject, id }, 1)),
      );
      expect(admittedOf(await Promise.all(takes))).toBe(60);
    }
    const held = await Promise.all(shards.map((shard) => admin(shard).dbsize()));
    expect(Math.min(...held)).toBeGreaterThan(0);
    expect(nodes.map(({ limiter }) => limiter.state)).toEqual(['redis', 'redis']);
  });

  test('with a shard that stalls is replaced by memory until the shard is back', async () => {
    const shards = await cluster();
    const { limiter } = await node(shards.map(({ url }) => url));
    const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
    const takeEach = () => Promise.all(ids.map((id) => limiter.take({ ...subject, id }, 1)));
    await takeEach();
    shards[1]?.stall();
    expect(await timed(takeEach)).toBeLessThan(1_000);
    expect(limiter.state).toBe('degraded');
    shards[1]?.resume();
    await reaches(limiter, 'redis');
    for (const { tighter } of await takeEach()) expect(tighter.remaining).toBe(57);
    expect(limiter.state).toBe('redis');
  });
});

/** A way to a port whose connections can be made to carry nothing more, without being closed; later ones are sound. */
async function deadEndingProxy(to: number): Promise<{ port: number; deaden(): void }> {
  const open = new Set<[Socket, Socket]>();
  const proxy = createServer((near) => {
    const far = connect(to, '127.0.0.1');
    for (const socket of [near, far]) socket.on('error', () => {});
    near.pipe(far).pipe(near);
    open.add([near, far]);
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  closing.push(() => {
    proxy.close();
    for (const [near, far] of open) near.destroy() && far.destroy();
  });
  const address = proxy.address();
  if (address === null || typeof address === 'string') throw new Error('A TCP server has a port');
  const deaden = () => {
    for (const [near, far] of open) {
      near.unpipe(far);
      far.unpipe(near);
    }
  };
  return { port: address.port, deaden };
}

/** Two servers that share the slots of a cluster by halves. */
async function cluster(): Promise<RedisServer[]> {
  const flags = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '2000'];
  const shards = await Promise.all([server(...flags), server(...flags)]);
  const [first, second] = shards.map(admin);
  if (!first || !second) throw new Error('Two shards have two clients');
  await first.call('CLUSTER', 'ADDSLOTSRANGE', '0', '8191');
  await second.call('CLUSTER', 'ADDSLOTSRANGE', '8192', '16383');
  await first.call('CLUSTER', 'MEET', '127.0.0.1', `${shards[1]?.port}`);
  for (const client of [first, second]) {
    await until(
      async () => ((await client.cluster('INFO')).includes('cluster_slots_ok:16384') ? true : null),
      10_000,
    );
    await until(
      async () => ((await client.cluster('INFO')).includes('cluster_state:ok') ? true : null),
      10_000,
    );
  }
  return shards;
}
