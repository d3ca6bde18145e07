import { canStartRedis, until } from '@animal-store/limits/testing';
import { afterEach, describe, expect, test } from 'vitest';
import { admin, closeAll, consumeMany, countAllowed, node, server } from '../support/limiter-nodes.js';

afterEach(closeAll);

describe.skipIf(!canStartRedis())('the database that REDIS_URL names', () => {
  test('counts', async () => {
    const redis = await server('--databases', '2');
    const { limiter } = await node([`${redis.url}/1`]);
    expect(countAllowed(await consumeMany(limiter, 61))).toBe(60);
    expect(await admin(redis).dbsize()).toBe(0);
  });

  test('is looked for at the addresses of the family that REDIS_URL names', async () => {
    const { port } = await server();
    const { limiter } = await node([`redis://localhost:${port}?family=4`]);
    expect(limiter.state).toBe('redis');
    // The server listens on 127.0.0.1 only.
    const other = await node([`redis://localhost:${port}?family=6`], false);
    await until(() => other.logged.find((line) => /ENOTFOUND|ECONNREFUSED ::1|EADDRNOTAVAIL/.test(line)));
    expect(other.limiter.state).toBe('degraded');
  });

  test('if the server lacks it, limits are counted in memory, as the log says, and never in database 0', async () => {
    const redis = await server('--databases', '2');
    const client = admin(redis);
    const { limiter, logged } = await node([`${redis.url}/2`], false);
    const countConnections = async () =>
      Number(/total_connections_received:(\d+)/.exec(await client.info('stats'))?.[1]);
    const before = await countConnections();
    // It goes on trying, as after every other failure.
    await until(async () => (await countConnections()) > before + 3 || undefined);
    expect(limiter.state).toBe('degraded');
    expect(countAllowed(await consumeMany(limiter, 61))).toBe(60);
    expect(logged).toEqual([
      expect.stringMatching(/counted in memory.*database 2: ERR DB index is out of range/),
    ]);
    expect(await client.dbsize()).toBe(0);
  });

  test('if the user loses the right to it, the same, until it is granted again', async () => {
    const redis = await server('--databases', '2', '--save', '');
    const client = admin(redis);
    await client.acl('SETUSER', 'store', 'on', '>secret', '~*', '+@all');
    const url = redis.url.replace('://', '://store:secret@');
    const { limiter, logged } = await node([`${url}/1`]);
    await client.acl('SETUSER', 'store', '-select');
    await client.client('KILL', 'USER', 'store');
    await until(() => logged.find((line) => /database 1: NOPERM/.test(line)));
    expect(limiter.state).toBe('degraded');
    expect(await client.dbsize()).toBe(0);
    await client.acl('SETUSER', 'store', '+select');
    await until(() => limiter.state === 'redis' || undefined);
  });
});
