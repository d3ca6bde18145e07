import { createCaller, message, oldToolCall, post, toolCall } from '@animal-store/platform/testing';
import { expect, onTestFinished, test } from 'vitest';
import { list } from '#operations-under-test';
import { connectClient } from '../support/mcp.js';
import { createTestDatabase, startService, type TestServiceOptions } from '../support/test-service.js';

/** As many requests without a key an address has in a minute, and as many free ones a key */
const PER_MINUTE = 8;
const SHOP = 'https://shop.example';
const databaseUrl = await createTestDatabase();

async function serve(options: TestServiceOptions = {}) {
  const service = await startService({ databaseUrl, anonymousPerMinute: PER_MINUTE, ...options });
  onTestFinished(() => service.close());
  const issue = (perMinute = 100, perDay = 1_000) =>
    service.keys.create({ name: 'shop', plan: 'enterprise', expiresAt: null, perMinute, perDay });
  return { service, issue, call: createCaller(service) };
}

const notification = (method: string, head: Record<string, string> = {}) =>
  post({ jsonrpc: '2.0', method }, head);

/** Every way to end the key, which nothing limits. */
const REVOKE: readonly (readonly [what: string, path: string, init: RequestInit])[] = [
  ['revokeKey over REST', '/v1/key?hint=x', { method: 'DELETE' }],
  ['revokeKey over tRPC', '/trpc/revokeKey', post({ hint: 'x' })],
];

/** Every way to ask for what is free within a window. */
const WINDOWED: readonly (readonly [what: string, path: string, init: RequestInit])[] = [
  ['getKey over REST', '/v1/key', {}],
  ['getKey over tRPC', '/trpc/getKey', {}],
  ['getKey as a batch', '/trpc/getKey?batch=1', {}],
  ['getKey over MCP', '/mcp', toolCall('getKey')],
  ['server/discover', '/mcp', message('server/discover')],
  ['tools/list', '/mcp', message('tools/list')],
  [
    'a notification',
    '/mcp',
    notification('notifications/initialized', { 'mcp-method': 'notifications/initialized' }),
  ],
];

test.each(WINDOWED)('%s costs the key nothing, within a window of its own', async (_what, path, init) => {
  const { call, issue } = await serve();
  const { key } = await issue(5);
  for (let n = 0; n < PER_MINUTE; n += 1) {
    const { status, headers } = await call(path, { key, ...init });
    expect(status).not.toBe(429);
    expect([headers.get('x-ratelimit-limit'), headers.get('x-ratelimit-remaining')]).toEqual(['5', '5']);
  }
  const { status, headers, body } = await call(path, { key, ...init });
  const error = [body].flat()[0].error?.data.error ?? body;
  expect([status, error.code]).toEqual([429, 'rate_limit_exceeded']);
  expect(headers.get('x-ratelimit-limit')).toBe(String(PER_MINUTE));
  expect(headers.get('ratelimit-policy')).toBe(`"minute";q=${PER_MINUTE};w=60`);
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  // None of it counted towards the limits of the key, or a ban.
  expect((await call(list.path, { key })).headers.get('x-ratelimit-remaining')).toBe('4');
});

test.each([...WINDOWED, ...REVOKE])(
  '%s is answered while the key is over its limit or banned',
  async (_what, path, init) => {
    const { call, issue } = await serve();
    const { key } = await issue(1);
    for (const code of [undefined, 'rate_limit_exceeded', 'api_key_banned']) {
      expect((await call(list.path, { key })).body.code).toBe(code);
      if (code !== undefined) expect((await call(path, { key, ...init })).status).not.toBe(429);
    }
  },
);

test.each(REVOKE)('%s costs the key nothing, and has no limit', async (_what, path, init) => {
  const { call, issue } = await serve();
  const { key } = await issue(5);
  for (let n = 0; n < PER_MINUTE * 2; n += 1) {
    const { status, headers } = await call(path, { key, ...init });
    expect(status).toBe(400);
    expect([headers.get('x-ratelimit-limit'), headers.get('x-ratelimit-remaining')]).toEqual(['5', '5']);
  }
});

test('all that is free within a window shares that of its key of its key, from whatever address it comes', async () => {
  const { call, issue } = await serve({ trustProxy: ['127.0.0.1'] });
  const { key } = await issue();
  const statuses = await Promise.all(
    Array.from({ length: 30 }, async (_, n) => {
      const [, path, init] = WINDOWED[n % WINDOWED.length] as (typeof WINDOWED)[number];
      const headers = { ...(init.headers as object), 'x-forwarded-for': `192.0.2.${n}` };
      return (await call(path, { key, ...init, headers })).status;
    }),
  );
  expect(statuses.filter((status) => status !== 429)).toHaveLength(PER_MINUTE);
});

test('nothing that others send counts there: a key can end itself from an address that is over its limit', async () => {
  const { call, issue } = await serve();
  const [own, other] = [await issue(), await issue()];
  for (const key of ['by_test_garbage', null, 'by_test_garbage'])
    for (let n = 0; n < PER_MINUTE; n += 1) await call(list.path, { key });
  for (let n = 0; n <= PER_MINUTE; n += 1) await call('/v1/key', { key: other.key });
  expect((await call('/v1/key', { key: null })).status).toBe(429);
  expect((await call('/v1/key', { key: other.key })).status).toBe(429);
  expect((await call('/v1/key', { key: own.key })).status).toBe(200);
  const ended = await call(`/v1/key?hint=${own.apiKey.hint}`, { key: own.key, method: 'DELETE' });
  expect(ended.status).toBe(204);
});

test('over MCP nothing is free that only the body tells, and over the limit that is refused', async () => {
  const { call, issue } = await serve();
  const bodies = [
    oldToolCall('getKey'),
    oldToolCall('getKey', {}, { 'mcp-method': 'tools/call' }),
    post({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
    notification('notifications/initialized'),
    // These are none of what is free.
    message('initialize', { protocolVersion: '2025-11-25' }),
    message('tools/call', { name: 'nope' }),
    message('nope'),
    { method: 'GET' },
  ];
  const { key } = await issue(bodies.length);
  for (const [index, init] of bodies.entries()) {
    const { headers } = await call('/mcp', { key, ...init });
    expect([index, headers.get('x-ratelimit-remaining')]).toEqual([index, String(bodies.length - index - 1)]);
  }
  for (const init of bodies.slice(0, 4)) expect((await call('/mcp', { key, ...init })).status).toBe(429);
});

test('a head that calls nothing makes no call free: the body has to agree', async () => {
  const { call, issue } = await serve();
  const { key } = await issue();
  for (const method of ['tools/list', 'server/discover', 'notifications/initialized']) {
    const { status, body } = await call('/mcp', {
      key,
      ...oldToolCall(list.name, {}, { 'mcp-method': method }),
    });
    expect([status, body.error.code]).toEqual([400, -32_020]);
  }
});

test('without a valid key nothing is free', async () => {
  for (const [what, path, init] of [...WINDOWED, ...REVOKE]) {
    const { call } = await serve();
    const statuses: number[] = [];
    for (let n = 0; n <= PER_MINUTE; n += 1)
      statuses.push((await call(path, { ...init, key: 'by_test_wrong' })).status);
    expect([what, ...statuses]).toEqual([what, ...Array(PER_MINUTE).fill(401), 429]);
  }
});

test.each([
  ['2026-07-28', 1],
  ['2025-11-25', 5],
] as const)('a conversation of %s that lists the tools and calls one costs %i', async (mode, cost) => {
  const { service, call, issue } = await serve({ anonymousPerMinute: 10_000 });
  const { key } = await issue();
  const client = await connectClient({ ...service, key }, mode);
  await client.listTools();
  await client.callTool({ name: list.name, arguments: {} });
  const remaining = async () => Number((await call('/v1/key', { key })).headers.get('x-ratelimit-remaining'));
  // The client of 2025 asks for a stream beside, without waiting for the answer.
  await expect.poll(remaining).toBe(100 - cost);
});

test('a preflight of a configured origin costs nothing, and is answered over the limit of the address', async () => {
  const { call } = await serve({ corsOrigins: [SHOP] });
  const headers = { origin: SHOP, 'access-control-request-method': 'GET' };
  const ask = (path: string) => call(path, { method: 'OPTIONS', key: null, headers });
  const paths = [list.path, list.trpc, '/v1/key', '/mcp'];
  for (let n = 0; n < PER_MINUTE; n += 1) {
    for (const path of paths) {
      const { status, headers: sent } = await ask(path);
      expect([path, status, sent.get('x-ratelimit-remaining')]).toEqual([path, 204, String(PER_MINUTE)]);
    }
  }
  for (let n = 0; n <= PER_MINUTE; n += 1) await call(list.path, { key: null });
  expect((await call(list.path, { key: null })).status).toBe(429);
  for (const path of paths) expect([path, (await ask(path)).status]).toEqual([path, 204]);
  // Of another origin, or of nothing, it is a request like any other.
  const others = { ...headers, origin: 'https://evil.example' };
  expect((await call(list.path, { method: 'OPTIONS', headers: others })).headers.get('ratelimit')).toMatch(
    /r=999999/,
  );
});
