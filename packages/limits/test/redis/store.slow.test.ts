import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { canStartRedis, until } from '@animal-store/limits/testing';
import { afterEach, describe, expect, test } from 'vitest';
import type { Limiter } from '../../src/index.js';
import {
  admin,
  closeAll,
  consumeMany,
  countAllowed,
  node,
  onClose,
  reaches,
  server,
  subject,
} from '../support/limiter-nodes.js';

const hasRedis = canStartRedis();

afterEach(closeAll);

async function readRemaining(limiter: Limiter, of = subject): Promise<number[]> {
  const { windows } = await limiter.read(of, 0);
  return windows.map(({ remaining }) => remaining);
}

describe.skipIf(!hasRedis)('a Redis that fails', () => {
  test('stalled: memory takes over at once with all counts, and Redis counts again when it is back', async () => {
    const redis = await server();
    const { limiter } = await node([redis.url]);
    expect(countAllowed(await consumeMany(limiter, 40))).toBe(40);
    redis.stall();
    await limiter.consume(subject, 1);
    expect(limiter.state).toBe('degraded');
    await consumeMany(limiter, 100, { ...subject, id: 'other' });
    expect(countAllowed(await consumeMany(limiter, 30))).toBe(19);
    redis.resume();
    await reaches(limiter, 'redis');
    expect(countAllowed(await consumeMany(limiter, 5))).toBe(0);
  });

  test('stalled with many requests in flight: all are decided, and no more than the limit allowed', async () => {
    const redis = await server();
    const { limiter } = await node([redis.url]);
    redis.stall();
    const requests = Array.from({ length: 500 }, () => limiter.consume(subject, 1));
    expect(countAllowed(await Promise.all(requests))).toBe(60);
  });

  test('a connection that is silently dead is replaced, and Redis counts again', async () => {
    const redis = await server();
    const proxy = await startSilenceableProxy(redis.port);
    const { limiter } = await node([`redis://127.0.0.1:${proxy.port}`]);
    proxy.silence();
    await limiter.consume(subject, 1);
    expect(limiter.state).toBe('degraded');
    await reaches(limiter, 'redis');
    expect((await limiter.consume(subject, 1)).binding.remaining).toBe(58);
  });

  test('that closes idle connections: nothing is degraded, nothing is logged, and no request too many is admitted', async () => {
    const redis = await server();
    const { limiter, logged } = await node([redis.url]);
    const said = logged.length;
    const client = admin(redis);
    await client.config('SET', 'timeout', '1');
    const countConnections = async () =>
      Number(/total_connections_received:(\d+)/.exec(await client.info('stats'))?.[1]);
    const before = await countConnections();
    const states = new Set<string>();
    await until(async () => {
      states.add(limiter.state);
      return (await countConnections()) > before || undefined;
    });
    await reaches(limiter, 'redis');
    expect([[...states], logged.slice(said)]).toEqual([['redis'], []]);
    expect(countAllowed(await consumeMany(limiter, 100))).toBe(60);
  });

  test('that closes idle connections of two nodes: requests that come just then wait for the next ones, and exactly the limit is admitted', async () => {
    const redis = await server();
    const client = admin(redis);
    for (let round = 0; round < 5; round += 1) {
      const nodes = [await node([redis.url]), await node([redis.url])];
      const said = nodes.map(({ logged }) => logged.length);
      await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      // By then the nodes have noticed.
      for (let n = 0; n < 2; n += 1) await client.ping();
      const asked = { ...subject, id: `of round ${round}` };
      const answers = await Promise.all(nodes.map(({ limiter }) => consumeMany(limiter, 50, asked)));
      expect(countAllowed(answers.flat())).toBe(60);
      expect(nodes.map(({ logged }, index) => logged.slice(said[index]))).toEqual([[], []]);
    }
  });

  test('killed and restarted empty: the next requests carry the counts of the node over', async () => {
    const redis = await server();
    const { limiter } = await node([redis.url]);
    await consumeMany(limiter, 40);
    await redis.kill();
    await reaches(limiter, 'degraded');
    expect(countAllowed(await consumeMany(limiter, 10))).toBe(10);
    await redis.run();
    await reaches(limiter, 'redis');
    expect(countAllowed(await consumeMany(limiter, 30))).toBe(10);
    const other = await node([redis.url]);
    expect(await readRemaining(other.limiter)).toEqual([0, 940]);
  });

  test('returning to a busy process: requests that arrive just before it counts again are not given more', async () => {
    const redis = await server();
    const { limiter } = await node([redis.url]);
    const busy = { ...subject, limits: { perMinute: 10_000, perDay: 10_000 } };
    await consumeMany(limiter, 50, busy);
    await redis.kill();
    await reaches(limiter, 'degraded');
    await redis.run();
    const requests: Promise<number>[] = [];
    const consume = async () => (await limiter.consume(busy, 1)).binding.remaining;
    // The answer to the trial is read after the request has arrived, and before the request is sent.
    const work = setInterval(() => {
      requests.push(consume());
      const endsAtMs = performance.now() + 15;
      while (performance.now() < endsAtMs);
    }, 1);
    await reaches(limiter, 'redis').finally(() => clearInterval(work));
    requests.push(consume());
    expect(await Promise.all(requests)).toEqual(requests.map((_request, index) => 9_949 - index));
  });

  test('missing when the service starts: memory decides until it appears', async () => {
    const redis = await server();
    await redis.kill();
    const { limiter } = await node([redis.url], false);
    expect(limiter.state).toBe('degraded');
    expect(countAllowed(await consumeMany(limiter, 70))).toBe(60);
    await expect(limiter.ready(50)).rejects.toThrow('Redis cannot be used');
    await redis.run();
    await reaches(limiter, 'redis');
    expect(await readRemaining(limiter)).toEqual([0, 940]);
  });

  test('a wrong password: memory decides, the log says why without the password, and the right one is noticed', async () => {
    const redis = await server('--requirepass', 'right');
    const url = redis.url.replace('//', '//:wrong-secret@');
    const { limiter, logged } = await node([url], false);
    expect(countAllowed(await consumeMany(limiter, 70))).toBe(60);
    const line = await until(() => logged.find((text) => text.includes('WRONGPASS')));
    expect(line).not.toContain('secret');
    await admin({ url: redis.url.replace('//', '//:right@') }).config('SET', 'requirepass', 'wrong-secret');
    await reaches(limiter, 'redis');
  });

  test.each([
    {
      problem: 'a replica that accepts no writes',
      set: ['REPLICAOF', '127.0.0.1', '1'],
      unset: ['REPLICAOF', 'NO', 'ONE'],
      reason: /READONLY/,
    },
    {
      problem: 'a server whose memory is full',
      set: ['CONFIG', 'SET', 'maxmemory', '1'],
      unset: ['CONFIG', 'SET', 'maxmemory', '0'],
      reason: /OOM/,
    },
    {
      problem: 'a user who may not run scripts',
      set: ['ACL', 'SETUSER', 'default', '-eval', '-evalsha'],
      unset: ['ACL', 'SETUSER', 'default', '+@all'],
      reason: /NOPERM/,
    },
  ])('$problem: memory decides until that is fixed, and the log says why', async ({ set, unset, reason }) => {
    const redis = await server();
    const { limiter, logged } = await node([redis.url]);
    const client = admin(redis);
    await consumeMany(limiter, 40);
    await client.call(set[0] ?? '', set.slice(1));
    expect(countAllowed(await consumeMany(limiter, 30))).toBe(20);
    expect(limiter.state).toBe('degraded');
    expect(logged.at(-1)).toMatch(reason);
    const later = await node([redis.url], false);
    await until(() => later.logged.find((line) => reason.test(line)));
    await client.call(unset[0] ?? '', unset.slice(1));
    await Promise.all([limiter, later.limiter].map((of) => reaches(of, 'redis')));
    expect((await limiter.consume(subject, 1)).isAllowed).toBe(false);
  });

  test('a server that has lost the script gets it again, and no request is counted twice', async () => {
    const redis = await server();
    const { limiter } = await node([redis.url]);
    await consumeMany(limiter, 10);
    await admin(redis).script('FLUSH');
    expect(countAllowed(await consumeMany(limiter, 60))).toBe(50);
    expect(limiter.state).toBe('redis');
  });

  test('FLUSHALL before every request: exactly the limit is allowed', async () => {
    const redis = await server();
    const { limiter } = await node([redis.url]);
    const client = admin(redis);
    let allowed = 0;
    for (let n = 0; n < 70; n += 1) {
      allowed += countAllowed([await limiter.consume(subject, 1)]);
      await client.flushall();
    }
    expect(allowed).toBe(60);
    expect(limiter.state).toBe('redis');
  });

  test('FLUSHALL with many requests in flight: only what the node has not been told yet is lost', async () => {
    const redis = await server();
    const { limiter } = await node([redis.url]);
    const client = admin(redis);
    await consumeMany(limiter, 30);
    const requests: ReturnType<Limiter['consume']>[] = [];
    let answered = 0;
    let inFlight = 0;
    for (let n = 0; n < 60; n += 1) {
      const request = Promise.resolve(limiter.consume(subject, 1));
      void request.then(() => {
        answered += 1;
      });
      requests.push(request);
      if (n === 15) {
        inFlight = requests.length - answered;
        void client.flushall();
      }
      await new Promise(setImmediate);
    }
    expect(30 + countAllowed(await Promise.all(requests))).toBeLessThanOrEqual(60 + inFlight);
    expect(limiter.state).toBe('redis');
  });

  test('a window that Redis has lost ends when it would have ended', async () => {
    const redis = await server();
    const { limiter, clock } = await node([redis.url]);
    await consumeMany(limiter, 59);
    clock.aheadMs = 20_000;
    await admin(redis).flushall();
    const { binding, windows } = await limiter.consume(subject, 1);
    expect(binding).toMatchObject({ remaining: 0, resetSeconds: 40 });
    expect(windows[1]?.resetSeconds).toBe(86_400 - 20);
  });

  test('a window that has ended is not taken for a lost one', async () => {
    const redis = await server();
    const { limiter, clock } = await node([redis.url]);
    await consumeMany(limiter, 60);
    clock.aheadMs = 60_000;
    const age = "redis.call('HINCRBY', KEYS[1], 'minuteEnds', -60000)";
    await admin(redis).eval(age, 1, `limits:key:{${subject.id}}`);
    expect(await limiter.consume(subject, 1)).toMatchObject({ binding: { remaining: 59, resetSeconds: 60 } });
  });

  test('a stall of this process is not mistaken for one of Redis', async () => {
    const redis = await server();
    const { limiter } = await node([redis.url]);
    const result = limiter.consume(subject, 1);
    const startedMs = performance.now();
    while (performance.now() - startedMs < 500);
    expect((await result).isAllowed).toBe(true);
    expect(limiter.state).toBe('redis');
  });

  test('a closed limiter still decides', async () => {
    const redis = await server();
    const { limiter } = await node([redis.url]);
    await consumeMany(limiter, 59);
    await limiter.close();
    expect(countAllowed(await consumeMany(limiter, 5))).toBe(1);
  });
});

describe.skipIf(!hasRedis)('several nodes on one Redis', () => {
  test('together they allow exactly the limit', async () => {
    const redis = await server();
    const nodes = await Promise.all([node([redis.url]), node([redis.url]), node([redis.url])]);
    const requests = nodes.flatMap(({ limiter }) =>
      Array.from({ length: 200 }, () => limiter.consume(subject, 1)),
    );
    expect(countAllowed(await Promise.all(requests))).toBe(60);
  });

  test('together they allow exactly the limit, even after a restart of Redis', async () => {
    const redis = await server();
    const nodes = await Promise.all([node([redis.url]), node([redis.url])]);
    for (const { limiter } of nodes) await consumeMany(limiter, 20);
    await redis.kill();
    await Promise.all(nodes.map(({ limiter }) => reaches(limiter, 'degraded')));
    await redis.run();
    await Promise.all(nodes.map(({ limiter }) => reaches(limiter, 'redis')));
    // The node that counted last knows all 40 and carries them over; the other then gets them from Redis.
    const results = [
      ...(await consumeMany(nodes[1].limiter, 30)),
      ...(await consumeMany(nodes[0].limiter, 30)),
    ];
    expect(countAllowed(results)).toBe(20);
  });

  test('together they allow exactly the limit, even after FLUSHALL', async () => {
    const redis = await server();
    const nodes = await Promise.all([node([redis.url]), node([redis.url])]);
    for (const { limiter } of nodes) await consumeMany(limiter, 20);
    await admin(redis).flushall();
    const results = [
      ...(await consumeMany(nodes[1].limiter, 30)),
      ...(await consumeMany(nodes[0].limiter, 30)),
    ];
    expect(countAllowed(results)).toBe(20);
    expect(nodes.map(({ limiter }) => limiter.state)).toEqual(['redis', 'redis']);
  });

  test('after FLUSHALL under load, only what a node has not been told yet is lost', async () => {
    const redis = await server();
    const nodes = await Promise.all([node([redis.url]), node([redis.url])]);
    const client = admin(redis);
    let sent = 0;
    // The nodes take turns, so that each lags one request per key behind.
    const consumeInTurns = async (of: typeof subject) => {
      let allowed = 0;
      for (let n = 0; n < 100; n += 1) {
        sent += 1;
        if (sent === 48 * 40) void client.flushall();
        const result = await nodes[n % nodes.length]?.limiter.consume(of, 1);
        if (result?.isAllowed) allowed += 1;
      }
      return allowed;
    };
    const ids = Array.from({ length: 48 }, (_, n) => `key-${n}`);
    const allowed = await Promise.all(ids.map((id) => consumeInTurns({ ...subject, id })));
    expect(Math.min(...allowed)).toBeGreaterThanOrEqual(60);
    expect(Math.max(...allowed)).toBeLessThanOrEqual(61);
  });

  test('requests of many keys that arrive together are one command', async () => {
    const redis = await server();
    const { limiter } = await node([redis.url]);
    const client = admin(redis);
    const requests = Array.from({ length: 200 }, (_, n) =>
      limiter.consume({ ...subject, id: `key-${n % 50}` }, 1),
    );
    const results = await Promise.all(requests);
    expect(results.map(({ binding }) => binding.remaining)).toEqual(
      requests.map((_, n) => 59 - Math.floor(n / 50)),
    );
    // The trial of the circuit breaker is one eval and one evalsha.
    const commands = (await client.info('commandstats')).match(/cmdstat_(?:eval|evalsha):calls=\d+/g);
    expect(commands?.sort()).toEqual(['cmdstat_eval:calls=1', 'cmdstat_evalsha:calls=2']);
  });

  test('an allowed request is one command, a known denial none, and every key expires', async () => {
    const redis = await server();
    const { limiter } = await node([redis.url]);
    const client = admin(redis);
    await consumeMany(limiter, 60);
    const calls = async () =>
      Number((await client.info('commandstats')).match(/cmdstat_evalsha:calls=(\d+)/)?.[1]);
    const before = await calls();
    await consumeMany(limiter, 1, { ...subject, id: 'another' });
    expect((await calls()) - before).toBe(1);
    const results = await consumeMany(limiter, 50);
    expect(countAllowed(results)).toBe(0);
    // A denial is repeated for a second without asking again; on a slow machine that second passes.
    expect((await calls()) - before).toBeLessThanOrEqual(3);
    for (const name of await client.keys('*')) expect(await client.pttl(name)).toBeGreaterThan(0);
  });
});

/** A proxy whose open connections can be silenced without being closed. Later connections work. */
async function startSilenceableProxy(to: number): Promise<{ port: number; silence(): void }> {
  const open = new Set<[Socket, Socket]>();
  const proxy = createServer((near) => {
    const far = connect(to, '127.0.0.1');
    for (const socket of [near, far]) socket.on('error', () => {});
    near.pipe(far).pipe(near);
    open.add([near, far]);
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  onClose(() => {
    proxy.close();
    for (const [near, far] of open) near.destroy() && far.destroy();
  });
  const address = proxy.address();
  if (address === null || typeof address === 'string') throw new Error('A TCP server has a port');
  const silence = () => {
    for (const [near, far] of open) {
      near.unpipe(far);
      far.unpipe(near);
    }
  };
  return { port: address.port, silence };
}
