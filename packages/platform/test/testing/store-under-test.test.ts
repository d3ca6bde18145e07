import fs from 'node:fs';
import type { Definition } from '@animal-store/platform/definition';
import {
  findRedis,
  PROTOCOLS,
  prepareServers,
  readServers,
  startStore,
} from '@animal-store/platform/testing';
import { afterAll, expect, onTestFinished, test, vi } from 'vitest';
import { create, definition, list, newItem, read, resources, TABLE, TEXT } from '#operations-under-test';

const store = await startStore({ definition, resources });
afterAll(() => store.close());

test.each(PROTOCOLS)(
  'over %s an operation is called by its name, whatever its path, query and body',
  async (name) => {
    const by = store.protocols[name];
    const { result: created } = await by(create.name, newItem(`Over ${name}`));
    expect(created[TEXT]).toBe(`Over ${name}`);
    expect((await by(read.name, read.inputOf(created.id))).result).toEqual(created);
    expect((await by(list.name, { limit: 100 })).result).toContainEqual(created);
    expect(await by(read.name, read.inputOf(999_999))).toMatchObject({ status: 404, code: 'not_found' });
  },
);

test('an operation that the store does not have is an error that names it', async () => {
  await expect(store.protocols.REST('noSuchOperation')).rejects.toThrow('noSuchOperation');
});

test('a tool is called as an assistant calls it', async () => {
  expect(await store.callTool(create.name, newItem('By a tool'))).toMatchObject({
    structuredContent: { [TEXT]: 'By a tool' },
  });
  expect(await store.callTool(create.name, {})).toMatchObject({ isError: true });
});

test('a key has the plan and the scopes that the test asks for, and its limit ends when the clock is moved', async () => {
  const [plan = '', limits] = Object.entries(definition.plans)[0] ?? [];
  const key = await store.issueKey({ plan, scopes: [list.scope] });
  const send = (path: string, init = {}) => store.call(path, { key, ...init });
  expect((await send('/v1/key')).body).toMatchObject({ plan, scopes: [list.scope] });
  expect((await send(create.path, { method: 'POST' })).body.code).toBe('insufficient_scope');
  for (let n = 1; n < Number(limits?.perMinute); n += 1) await send(list.path);
  expect((await send(list.path)).status).toBe(429);
  store.advance(60_000);
  expect((await send(list.path)).status).toBe(200);
});

test('the service has the documented grants and no others: what lacks in them fails a test, which shows why', async () => {
  const written = vi.spyOn(fs, 'writeSync');
  onTestFinished(() => written.mockRestore());
  const { name } = readServers(definition).serviceRole;
  const { pool } = store.database;
  expect((await store.call(list.path)).status).toBe(200);
  await pool.query(`REVOKE ALL ON ${TABLE} FROM ${name}`);
  onTestFinished(async () => {
    await pool.query(`GRANT ${definition.identity.grants[TABLE].join(', ')} ON ${TABLE} TO ${name}`);
  });
  expect((await store.call(list.path)).status).toBe(503);
  // Where its response was not quicker
  await expect.poll(() => written.mock.calls.join()).toContain(`permission denied for table ${TABLE}`);
});

test('a scope that no migration has added is named before the first test', async () => {
  const changed: Definition = { ...definition, scopes: [...definition.scopes, 'gold:dig'] };
  await expect(prepareServers(changed)).rejects.toThrow(
    /^The database does not know the scope gold:dig, .* which npx store-tools draft NAME writes\.$/,
  );
});

const redis = await findRedis();
afterAll(() => redis?.close());

test.skipIf(redis === undefined)('two stores on one Redis count together', async () => {
  const redisUrls = [String(redis?.url)];
  const { databaseUrl } = store;
  const nodes = await Promise.all(
    [1, 2].map(() => startStore({ definition, resources, databaseUrl, redisUrls })),
  );
  onTestFinished(async () => void (await Promise.all(nodes.map((node) => node.close()))));
  const key = await store.issueKey();
  const left = [];
  for (const node of nodes)
    left.push((await node.call(list.path, { key })).headers.get('x-ratelimit-remaining'));
  expect(Number(left[0]) - Number(left[1])).toBe(1);
});
