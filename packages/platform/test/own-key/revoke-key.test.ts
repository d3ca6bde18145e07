import { type Caller, createCaller, post } from '@animal-store/platform/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { create, definition, list } from '#operations-under-test';
import { rotate } from '../support/rotate.js';
import { startService, type TestService, useService } from '../support/test-service.js';

/** Another node on the same database */
let other: TestService;
let call: Caller;
let callOther: Caller;

const { service } = useService();

beforeAll(async () => {
  other = await startService({ databaseUrl: service.databaseUrl });
  call = createCaller(service);
  callOther = createCaller(other);
});
afterAll(async () => {
  await other.close();
});

async function issue(input: Partial<Parameters<TestService['keys']['create']>[0]> = {}) {
  const { key, apiKey } = await service.keys.create({ name: 'shop', plan: 'pro', expiresAt: null, ...input });
  return { key, apiKey, hint: key.slice(0, 12) };
}

/** Every way to call the operation and nothing else, with a hint or without one. */
const WAYS = [
  [
    'REST',
    (key: string, hint?: string) =>
      call(`/v1/key${hint === undefined ? '' : `?hint=${hint}`}`, { key, method: 'DELETE' }),
  ],
  ['tRPC', (key: string, hint?: string) => call('/trpc/revokeKey', { key, ...post({ hint }) })],
  [
    'a tRPC batch of one call',
    (key: string, hint?: string) => call('/trpc/revokeKey?batch=1', { key, ...post({ 0: { hint } }) }),
  ],
] as const;

test.each(WAYS)(
  'over %s, a key ends itself: at once on this node, and soon on the others',
  async (name, revoke) => {
    const { key, hint, apiKey } = await issue();
    for (const each of [call, callOther]) expect((await each(list.path, { key })).status).toBe(200);
    const { status, body } = await revoke(key, hint);
    expect([status, body]).toEqual(
      name === 'REST' ? [204, undefined] : [200, name === 'tRPC' ? { result: {} } : [{ result: {} }]],
    );
    expect((await call(list.path, { key })).body.code).toBe('invalid_api_key');
    expect((await service.keys.find(apiKey.id))?.revokedAt).toBeInstanceOf(Date);
    await expect.poll(async () => (await callOther(list.path, { key })).status).toBe(401);
  },
);

test('a key that has ended itself cannot end itself again', async () => {
  const { key, hint } = await issue();
  const answers = await Promise.all(
    [1, 2, 3].map(() => call(`/v1/key?hint=${hint}`, { key, method: 'DELETE' })),
  );
  for (const { status } of answers) expect([204, 401]).toContain(status);
  expect((await call(`/v1/key?hint=${hint}`, { key, method: 'DELETE' })).body.code).toBe('invalid_api_key');
});

test.each(WAYS)(
  'over %s, without its own hint a key gets a 400 that says so, and goes on',
  async (name, revoke) => {
    const { key, hint } = await issue();
    const { hint: ofOther } = await issue();
    for (const [wrong, problem] of [
      [undefined, 'is required'],
      ['', 'must have 1 to 200 characters'],
      [ofOther, 'must be the hint of the key that is sent'],
      [hint.slice(0, -1), 'must be the hint of the key that is sent'],
      [key, 'must be the hint of the key that is sent'],
      ['a'.repeat(201), 'must have 1 to 200 characters'],
    ] as const) {
      const { status, body } = await revoke(key, wrong);
      const answer = [body].flat().at(0);
      const error = name === 'REST' ? answer : answer.error.data.error;
      expect([status, error.code, error.message]).toEqual([
        ...[400, 'invalid_request', expect.stringContaining(`hint ${problem}`)],
      ]);
      if (name !== 'REST') expect(answer.error.data.fields.hint).toContain(problem);
    }
    expect((await call(list.path, { key })).status).toBe(200);
  },
);

test('the hint that getKey shows is the one that it takes', async () => {
  const { key } = await issue();
  const { body } = await call('/v1/key', { key });
  expect((await call(`/v1/key?hint=${body.hint}`, { key, method: 'DELETE' })).status).toBe(204);
});

test.each(definition.scopes)('a key with no scope but %s may end itself', async (scope) => {
  const { key, hint } = await issue({ scopes: [scope] });
  expect((await call(`/v1/key?hint=${hint}`, { key, method: 'DELETE' })).status).toBe(204);
});

test.each(['old', 'new'])('during an overlap, the %s key ends both, by its own hint alone', async (which) => {
  const { key, apiKey } = await issue();
  const rotated = await rotate(service.keys, apiKey.id, new Date(Date.now() + 86_400_000));
  const keys = { old: key, new: rotated?.key ?? '' };
  const [sent, kept] = which === 'old' ? [keys.old, keys.new] : [keys.new, keys.old];
  const revoke = (hintOf: string) =>
    call(`/v1/key?hint=${hintOf.slice(0, 12)}`, { key: sent, method: 'DELETE' });
  for (const each of [sent, kept]) expect((await call(list.path, { key: each })).status).toBe(200);
  expect((await revoke(kept)).status).toBe(400);
  for (const each of [sent, kept]) expect((await call(list.path, { key: each })).status).toBe(200);
  expect((await revoke(sent)).status).toBe(204);
  for (const each of [sent, kept]) expect((await call(list.path, { key: each })).status).toBe(401);
});

test.each(WAYS)(
  'over %s, a key that is over its limit or banned can still end itself',
  async (name, revoke) => {
    const limits = { plan: 'enterprise', perMinute: 2, perDay: 100 } as const;
    for (const requests of [3, 4, 5]) {
      const { key, hint } = await issue(limits);
      const codes: unknown[] = [];
      for (let n = 0; n < requests; n += 1) codes.push((await call(list.path, { key })).body.code);
      expect(codes.at(-1)).toBe(requests === 5 ? 'api_key_banned' : 'rate_limit_exceeded');
      const { status, headers } = await revoke(key, hint);
      expect(status).toBe(name === 'REST' ? 204 : 200);
      // What it shows is the key's.
      expect([headers.get('x-ratelimit-limit'), headers.get('x-ratelimit-remaining')]).toEqual(['2', '0']);
    }
  },
);

test.each(WAYS)(
  'over %s, nobody who holds a key keeps its owner from ending it: neither by requests for it, nor over its limit, nor by a ban',
  async (_name, revoke) => {
    const limited = await startService({ databaseUrl: service.databaseUrl, anonymousPerMinute: 2 });
    const callLimited = createCaller(limited);
    const { key, hint } = await issue({ plan: 'enterprise', perMinute: 2, perDay: 100 });
    const statuses: number[] = [];
    for (let n = 0; n < 4; n += 1) {
      statuses.push((await callLimited('/v1/key?hint=x', { key, method: 'DELETE' })).status);
      await callLimited('/v1/key', { key });
    }
    expect(statuses).toEqual([400, 400, 400, 400]);
    const { headers } = await callLimited('/v1/key?hint=x', { key, method: 'DELETE' });
    expect(headers.get('x-ratelimit-remaining')).toBe('2');
    for (let n = 0; n < 5; n += 1) await call(list.path, { key });
    expect((await call(list.path, { key })).body.code).toBe('api_key_banned');
    expect((await revoke(key, hint)).status).toBeLessThan(300);
    expect((await call(list.path, { key })).status).toBe(401);
    await limited.close();
  },
);

test('as one of several calls of a batch, ending the key counts like any other', async () => {
  const { key, hint } = await issue({ plan: 'enterprise', perMinute: 3, perDay: 100 });
  const batch = () =>
    call('/trpc/revokeKey,revokeKey?batch=1', { key, ...post({ 0: { hint: 'x' }, 1: { hint: 'x' } }) });
  expect((await batch()).headers.get('x-ratelimit-remaining')).toBe('1');
  expect((await batch()).status).toBe(429);
  const { status, headers } = await call(`/trpc/revokeKey,${create.name}?batch=1`, {
    key: (await issue()).key,
    ...post({ 0: { hint }, 1: create.body }),
  });
  expect([status, headers.get('x-ratelimit-remaining')]).toEqual([207, '298']);
});

test('a rehearsed error ends no key', async () => {
  const { key, hint } = await issue();
  const headers = { prefer: 'error=service_unavailable' };
  expect((await call(`/v1/key?hint=${hint}`, { key, method: 'DELETE', headers })).status).toBe(503);
  expect((await call(list.path, { key })).status).toBe(200);
});
