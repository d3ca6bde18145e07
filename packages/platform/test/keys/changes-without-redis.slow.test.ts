import { canStartRedis, type RedisServer, startRedis } from '@animal-store/limits/testing';
import { createCaller } from '@animal-store/platform/testing';
import { afterAll, afterEach, expect, test } from 'vitest';
import { list } from '#operations-under-test';
import { runKeys } from '../support/process.js';
import { createTestDatabase } from '../support/test-service.js';
import { closeNodes, startNode, startTwoNodes, useNewKey } from '../support/two-nodes.js';

afterAll(closeNodes);

const environment = { DATABASE_URL: await createTestDatabase() };
let redis: RedisServer | undefined;
afterEach(async () => {
  await redis?.close();
  redis = undefined;
});

/** Starts a Redis that the test may stop. */
async function startOwnRedis() {
  const server = (await startRedis()) as RedisServer;
  redis = server;
  return { server, withRedis: { ...environment, REDIS_URL: server.url } };
}

test.runIf(canStartRedis()).each([
  ['down', (server: RedisServer) => server.kill()],
  ['stalled', (server: RedisServer) => server.stall()],
] as const)(
  'while Redis is %s, a revocation succeeds and takes effect on two nodes',
  async (_state, fail) => {
    const { server, withRedis } = await startOwnRedis();
    const { id, untilAll } = await useNewKey(environment, await startTwoNodes(withRedis), 'business');
    await untilAll(200);
    await fail(server);
    await runKeys(environment, 'revoke', id);
    await untilAll('invalid_api_key');
  },
);

test.runIf(canStartRedis())('a ban outlasts a restart of Redis and of the node that began it', async () => {
  const { server, withRedis } = await startOwnRedis();
  const limits = ['enterprise', '--per-minute', '3', '--per-day', '1000'];
  const nodes = await startTwoNodes(withRedis);
  const { key, calls, untilAll } = await useNewKey(environment, nodes, ...limits);
  for (let n = 0; n < 7; n += 1) await calls[0]?.(list.path);
  await untilAll('api_key_banned');
  await server.kill();
  await server.run();
  const url = await startNode(withRedis);
  expect((await createCaller({ url, key })(list.path)).body.code).toBe('api_key_banned');
});
