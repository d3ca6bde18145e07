import {
  type Caller,
  createCaller,
  oldToolCall,
  post,
  rpcPath,
  toolCall,
} from '@animal-store/platform/testing';
import { expect, test } from 'vitest';
import { create, definition, list, resources } from '#operations-under-test';
import { deprecated } from '../support/deprecated.js';
import { rotate } from '../support/rotate.js';
import { startService, type TestService, useService } from '../support/test-service.js';

const DAY_MS = 86_400_000;
const NOW = Date.parse('2026-03-01T12:00:00.250Z');

let nowMs = NOW;

const { call, service } = useService({ now: () => nowMs });

const NEW_KEY = { name: 'shop', expiresAt: null, plan: 'pro', perMinute: null, perDay: null } as const;

async function issue(input: Partial<Parameters<TestService['keys']['create']>[0]> = {}) {
  return service.keys.create({ ...NEW_KEY, ...input });
}

test('a key learns its name, hint, plan, scopes and times, the same over both protocols', async () => {
  const expiresAt = new Date(NOW + 400 * DAY_MS);
  const { key, apiKey } = await issue({ expiresAt, scopes: definition.scopes.toReversed() });
  const { status, body } = await call('/v1/key', { key });
  expect(status).toBe(200);
  expect(body).toEqual({
    name: 'shop',
    hint: apiKey.hint,
    plan: 'pro',
    scopes: definition.scopes,
    createdAt: apiKey.createdAt.toISOString(),
    expiresAt: expiresAt.toISOString(),
    bannedUntil: null,
    limits: [expect.objectContaining({ window: 'minute' }), expect.objectContaining({ window: 'day' })],
    usage: [],
  });
  // Usage is stored at a random time, perhaps between the two.
  const { limits: _limits, usage: _usage, ...rest } = body;
  expect((await call('/trpc/getKey', { key })).body.result.data).toMatchObject(rest);
});

test('the response has neither the key, nor its hash, nor its id', async () => {
  const { key, apiKey } = await issue();
  const text = JSON.stringify((await call('/v1/key', { key })).body);
  expect(text).not.toContain(key);
  expect(text).not.toContain(apiKey.id);
  const { rows } = await service.database.pool.query(
    "SELECT encode(hash, 'hex') AS hex, encode(hash, 'base64') AS base64 FROM api_keys WHERE id = $1",
    [apiKey.id],
  );
  for (const hash of Object.values(rows[0])) expect(text).not.toContain(hash);
});

test('the limits are those of the headers of the same response', async () => {
  const { key } = await issue();
  await call(list.path, { key });
  const { headers, body } = await call('/v1/key', { key });
  const [minute] = body.limits;
  expect(body.limits.map(({ limit, remaining }: never) => [limit, remaining])).toEqual([
    [300, 299],
    [10_000, 9_999],
  ]);
  expect(String(minute.limit)).toBe(headers.get('x-ratelimit-limit'));
  expect(String(minute.remaining)).toBe(headers.get('x-ratelimit-remaining'));
  expect(Date.parse(minute.resetsAt) / 1000).toBe(Number(headers.get('x-ratelimit-reset')));
});

test('in a batch, the limits are those after the whole batch', async () => {
  const { key } = await issue();
  const { body } = await call(`/trpc/getKey,${list.name},getKey?batch=1`, { key });
  for (const index of [0, 2]) expect(body[index].result.data.limits[0].remaining).toBe(297);
});

test('usage has what was stored of the last 30 days, newest first, with what was denied and what is deprecated', async () => {
  const withDeprecated = await startService({
    now: () => NOW,
    resources: [...resources, deprecated.resource],
  });
  const { key, apiKey } = await withDeprecated.keys.create(NEW_KEY);
  const insert =
    'INSERT INTO api_key_usage (api_key_id, day, operation, requests, denied) VALUES ($1, $2, $3, $4, $5)';
  for (const row of [
    ['2026-03-01', list.name, 5, 0],
    ['2026-02-01', list.name, 7, 30],
    ['2026-01-31', deprecated.name, 0, 2],
    ['2026-01-30', create.name, 9, 0],
  ]) {
    await withDeprecated.database.pool.query(insert, [apiKey.id, ...row]);
  }
  expect((await createCaller(withDeprecated)('/v1/key', { key })).body.usage).toEqual([
    { day: '2026-03-01', operation: list.name, requests: 5, denied: 0, deprecated: false },
    { day: '2026-02-01', operation: list.name, requests: 7, denied: 30, deprecated: false },
    { day: '2026-01-31', operation: deprecated.name, requests: 0, denied: 2, deprecated: true },
  ]);
  await withDeprecated.close();
});

test('asking for the key is part of its usage', async () => {
  const first = await startService();
  await createCaller(first)('/v1/key');
  // What is counted is stored at the latest when the service ends.
  await first.close();
  const { key, databaseUrl } = first;
  const next = await startService({ databaseUrl });
  const { body } = await createCaller(next)('/v1/key', { key });
  expect(body.usage).toMatchObject([{ operation: 'getKey', requests: 1, denied: 0, deprecated: false }]);
  await next.close();
});

/** Every way to call an operation and nothing else. */
const ALONE: readonly (readonly [protocol: string, path: string, init: RequestInit])[] = [
  ['REST', '/v1/key', {}],
  ['tRPC', '/trpc/getKey', {}],
  ['a tRPC batch of one call', '/trpc/getKey?batch=1', {}],
  ['MCP', '/mcp', toolCall('getKey')],
];

/** What the operation returns, in a body of any protocol. */
function readKey(body: unknown) {
  const [first] = [body].flat() as Awaited<ReturnType<Caller>>['body'][];
  return first.result?.data ?? first.result?.structuredContent ?? first;
}

/** A key with a small limit, which is used up. */
async function issueUsedUp() {
  const issued = await issue({ plan: 'enterprise', perMinute: 2, perDay: 100 });
  for (let n = 0; n < 2; n += 1) await call(list.path, { key: issued.key });
  return issued;
}

test.each(ALONE)('over %s, asking for the key costs it nothing', async (_, path, init) => {
  const { key } = await issue();
  for (let n = 0; n < 3; n += 1)
    expect((await call(path, { key, ...init })).headers.get('x-ratelimit-remaining')).toBe('300');
  expect((await call(list.path, { key })).headers.get('x-ratelimit-remaining')).toBe('299');
});

test.each(ALONE)(
  'over %s, a key that is over its limit learns so, with its windows in the headers',
  async (_, path, init) => {
    const { key } = await issueUsedUp();
    const { status, headers, body } = await call(path, { key, ...init });
    expect([status, headers.get('x-ratelimit-limit'), headers.get('x-ratelimit-remaining')]).toEqual([
      ...[200, '2', '0'],
    ]);
    const { limits } = readKey(body);
    expect(limits[0]).toMatchObject({ window: 'minute', limit: 2, remaining: 0 });
    expect((await call('/v1/key', { key, method: 'HEAD' })).status).toBe(200);
  },
);

test.each(ALONE)('over %s, a banned key learns until when, wherever the ban began', async (_, path, init) => {
  const read = async (key: string, by = call) => {
    const { body } = await by(path, { key, ...init });
    return readKey(body).bannedUntil;
  };
  // A ban begins by the clock of the database, which is not that of this test.
  const today = await startService({ databaseUrl: service.databaseUrl });
  const callToday = createCaller(today);
  const byItself = await issue({ plan: 'enterprise', perMinute: 1, perDay: 100 });
  const began = Date.now();
  for (let n = 0; n < 2; n += 1) await callToday(list.path, { key: byItself.key });
  expect((await callToday(list.path, { key: byItself.key })).body.code).toBe('api_key_banned');
  const ends = Date.parse(await read(byItself.key, callToday));
  expect(ends).toBeGreaterThanOrEqual(began + 300_000);
  expect(ends).toBeLessThanOrEqual(Date.now() + 300_000);
  await today.close();
  const inRow = await issue();
  const bannedUntil = new Date(NOW + 3_600_000).toISOString();
  await service.database.pool.query('UPDATE api_keys SET banned_until = $2 WHERE id = $1', [
    ...[inRow.apiKey.id, bannedUntil],
  ]);
  expect(await read(inRow.key)).toBe(bannedUntil);
  const over = await issue();
  await service.database.pool.query('UPDATE api_keys SET banned_until = $2 WHERE id = $1', [
    ...[over.apiKey.id, new Date(NOW - 1)],
  ]);
  expect(await read(over.key)).toBeNull();
});

test('as one of several calls of a batch, asking for the key counts like any other', async () => {
  const { key } = await issue({ plan: 'enterprise', perMinute: 2, perDay: 100 });
  const batch = '/trpc/getKey,getKey?batch=1';
  expect((await call(batch, { key })).headers.get('x-ratelimit-remaining')).toBe('0');
  const { status, body } = await call(batch, { key });
  expect([status, body.error.data.error.code]).toEqual([429, 'rate_limit_exceeded']);
});

test('a client of MCP whose headers do not name the tool asks for the key like for anything else', async () => {
  const { key } = await issue({ plan: 'enterprise', perMinute: 2, perDay: 100 });
  const ask = () => call('/mcp', { key, ...oldToolCall('getKey') });
  const { headers, body } = await ask();
  expect([readKey(body).name, headers.get('x-ratelimit-remaining')]).toEqual(['shop', '1']);
  await ask();
  expect((await ask()).body.code).toBe('rate_limit_exceeded');
  expect((await call('/mcp', { key, ...toolCall('getKey') })).status).toBe(200);
});

test('a rotated key learns its own hint, and not that of its successor', async () => {
  const { key, apiKey } = await issue();
  const rotated = await rotate(service.keys, apiKey.id, new Date(NOW + DAY_MS));
  for (const own of [key, rotated?.key ?? '', key])
    expect((await call('/v1/key', { key: own })).body.hint).toBe(own.slice(0, 12));
});

test('a key needs no particular scope', async () => {
  for (const scope of definition.scopes) {
    const { key } = await issue({ scopes: [scope] });
    expect((await call('/v1/key', { key })).body.scopes).toEqual([scope]);
    expect((await call('/trpc/getKey', { key })).status).toBe(200);
  }
});

test('without a key there is nothing to see', async () => {
  for (const path of ['/v1/key', '/trpc/getKey']) expect((await call(path, { key: null })).status).toBe(401);
});

test('every response of a key that expires within 30 days says when, and no other', async () => {
  const soon = new Date(NOW + 30 * DAY_MS);
  const { key } = await issue({ expiresAt: soon, scopes: [list.scope] });
  const { key: later } = await issue({ expiresAt: new Date(NOW + 30 * DAY_MS + 1) });
  const { key: never } = await issue();
  const requests: [string, RequestInit?][] = [
    [list.path],
    [create.path, post(create.body)],
    ['/v1/nothing'],
    [list.path, { method: 'DELETE' }],
    [rpcPath(list.name, {})],
    [rpcPath(list.name, { limit: 0 })],
  ];
  for (const [path, init] of requests) {
    const { headers } = await call(path, { ...init, key });
    expect([path, headers.get('x-api-key-expires')]).toEqual([path, soon.toISOString()]);
    for (const other of [later, never])
      expect((await call(path, { ...init, key: other })).headers.get('x-api-key-expires')).toBeNull();
  }
});

test('the key that a rotation replaced announces the end of the overlap', async () => {
  const { key, apiKey } = await issue();
  const overlapEndsAt = new Date(NOW + DAY_MS);
  const rotated = await rotate(service.keys, apiKey.id, overlapEndsAt);
  const old = await call('/v1/key', { key });
  expect(old.headers.get('x-api-key-expires')).toBe(overlapEndsAt.toISOString());
  expect(old.body.expiresAt).toBe(overlapEndsAt.toISOString());
  const renewed = await call('/v1/key', { key: rotated?.key ?? '' });
  expect([renewed.status, renewed.headers.get('x-api-key-expires')]).toEqual([200, null]);
});

test('the window that a response reports ends at a full second, never before it really does', async () => {
  const { key } = await issue();
  nowMs = NOW + 10_001;
  const { body } = await call('/v1/key', { key });
  nowMs = NOW;
  expect(body.limits[0].resetsAt).toBe('2026-03-01T12:01:11.000Z');
});
