import { setTimeout as delay } from 'node:timers/promises';
import { execute } from '@animal-store/platform/testing';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { type KeyServer, startKeyServer } from '../support/key-server.js';
import { createTestDatabase } from '../support/test-service.js';

let databaseUrl: string;
beforeAll(async () => {
  databaseUrl = await createTestDatabase();
});

test('of a thousand deliveries at once each makes a key; what is a 503, because it waited for too long, may be sent again', {
  timeout: 240_000,
}, async () => {
  const server = await startKeyServer({ DATABASE_URL: databaseUrl });
  onTestFinished(async () => void (await server.stop()));
  const deliver = async (owner: string): Promise<string> => {
    const { status, headers, body } = await server.keys('create', {
      ...{ name: 'x', plan: 'free', owner, once: true },
    });
    if (status === 503) {
      await delay(Number(headers.get('retry-after')) * 1_000);
      return deliver(owner);
    }
    expect(status).toBe(200);
    return body.id;
  };
  const ids = await Promise.all(Array.from({ length: 1_000 }, (_, n) => deliver(`cus_${n}`)));
  expect(new Set(ids).size).toBe(1_000);
  expect((await server.keys('list')).body).toHaveLength(1_000);
});

test('after kill -9 in the middle of creates, deliveries that come again leave one key each, which can be rotated', async () => {
  const first = await startKeyServer({ DATABASE_URL: databaseUrl });
  onTestFinished(async () => void (await first.stop()));
  const owners = Array.from({ length: 40 }, (_, n) => `killed ${n}`);
  const deliver = ({ keys }: KeyServer, owner: string) =>
    keys('create', { name: 'default', plan: 'free', owner, once: true });
  const count = async () =>
    (await execute(databaseUrl, "SELECT FROM api_keys WHERE owner LIKE 'killed %'")).length;
  const all = Promise.allSettled(owners.map((owner) => deliver(first, owner)));
  await expect.poll(count, { interval: 1 }).toBeGreaterThan(0);
  expect(await first.stop('SIGKILL')).toBe('SIGKILL');
  await all;
  const second = await startKeyServer({ DATABASE_URL: databaseUrl });
  onTestFinished(async () => void (await second.stop()));
  for (const owner of owners) {
    const { id } = (await deliver(second, owner)).body;
    expect((await second.keys('list', { owner })).body).toMatchObject([{ id }]);
    expect((await second.keys('rotate', { id })).body.key).toMatch(/^by_test_/);
  }
});
