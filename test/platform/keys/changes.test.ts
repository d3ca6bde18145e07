import { afterAll, beforeAll, expect, test } from 'vitest';
import { execute } from '../../support/execute.js';
import { create, list, otherList } from '../../support/operations-under-test.js';
import { runKeys } from '../../support/process.js';
import { findRedis } from '../../support/redis.js';
import { createCaller, createTestDatabase } from '../../support/test-service.js';
import { closeNodes, startTwoNodes, useNewKey } from '../../support/two-nodes.js';

afterAll(closeNodes);

// That it takes 2 s at most is shown in test/platform/contract/promised-times.test.ts.

const redis = await findRedis();
const environment = { DATABASE_URL: await createTestDatabase() };
let urls: readonly string[];
beforeAll(async () => {
  urls = await startTwoNodes(environment);
});

test.runIf(redis)('a revocation takes effect on two nodes with Redis', async () => {
  const nodes = await startTwoNodes({ ...environment, REDIS_URL: redis?.url ?? '' });
  const { id, untilAll } = await useNewKey(environment, nodes, 'business');
  await untilAll(200);
  await runKeys(environment, 'revoke', id);
  await untilAll('invalid_api_key');
});

test('rotation, a change of plan and revocation take effect on two nodes without Redis', async () => {
  const { id, key, untilAll } = await useNewKey(environment, urls, 'business');
  await untilAll(200);
  await runKeys(environment, 'set-plan', id, '--plan', 'pro');
  for (const url of urls) {
    const policy = async () => (await createCaller({ url, key })(list.path)).headers.get('ratelimit-policy');
    await expect.poll(policy).toContain('q=300');
  }
  const rotated = await runKeys(environment, 'rotate', id, '--overlap', '2s');
  for (const url of urls) expect((await createCaller({ url, key: rotated.key })(list.path)).status).toBe(200);
  await untilAll('invalid_api_key');
  await runKeys(environment, 'revoke', id);
  for (const url of urls) {
    const status = async () => (await createCaller({ url, key: rotated.key })(list.path)).status;
    await expect.poll(status).toBe(401);
  }
});

test('narrowed scopes take effect on two nodes, whether by the command line or by SQL', async () => {
  const { id, untilAll } = await useNewKey(environment, urls, 'business');
  await untilAll(200);
  await runKeys(environment, 'set-scopes', id, '--scopes', `${create.scope},${otherList.scope}`);
  await untilAll('insufficient_scope');
  for (const [scopes, code] of [
    [`{${list.scope}}`, 200],
    [`{${create.scope}}`, 'insufficient_scope'],
  ]) {
    await execute(environment.DATABASE_URL, 'UPDATE api_keys SET scopes = $1 WHERE id = $2', [scopes, id]);
    await untilAll(code);
  }
});

test('a ban that one node starts holds on every node, and ends there of unban', async () => {
  const limits = ['enterprise', '--per-minute', '3', '--per-day', '1000'];
  const { id, calls, untilAll } = await useNewKey(environment, urls, ...limits);
  for (let n = 0; n < 7; n += 1) await calls[0]?.(list.path);
  await untilAll('api_key_banned');
  const show = () => runKeys(environment, 'show', id);
  await expect.poll(show).toMatchObject({ banSeconds: 300, nextBanSeconds: 600 });
  expect(await runKeys(environment, 'unban', id)).toMatchObject({ bannedUntil: null, banSeconds: null });
  // One node after the other: a key that goes on sending to the first is banned again.
  for (const call of calls)
    await expect.poll(async () => (await call(list.path)).body.code).not.toBe('api_key_banned');
});
