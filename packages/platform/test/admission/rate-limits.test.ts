import { randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import { createLimiter } from '@animal-store/limits';
import { canStartRedis, findRedis, type RedisServer, startRedis } from '@animal-store/limits/testing';
import {
  type Caller,
  createCaller,
  message,
  oldToolCall,
  type Program,
  post,
  rpcPath,
  type TestResponse,
  toolCall,
  untilListening,
  untilServed,
} from '@animal-store/platform/testing';
import { pino } from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { create, definition, list, otherList, read, TABLE } from '#operations-under-test';
import { breakTable } from '../support/broken-table.js';
import { expectErrorBody } from '../support/expect-error-body.js';
import { run, runKeys } from '../support/process.js';
import {
  createTestDatabase,
  startService,
  type TestService,
  type TestServiceOptions,
} from '../support/test-service.js';

const log = pino({ level: 'silent' });
const databaseUrl = await createTestDatabase();
const sharedRedis = await findRedis();
const closers: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** A service over memory, whose clock the test can move, or over Redis with a key prefix of its own. */
async function serve(
  options: TestServiceOptions & { redisUrl?: string | undefined; clock?: () => number } = {},
) {
  const { redisUrl, clock, ...rest } = options;
  const redisUrls = redisUrl === undefined ? [] : [redisUrl];
  const limiter = await createLimiter({
    windows: definition.windows,
    redisUrls,
    log,
    prefix: `test:${randomUUID()}`,
    ...(clock ? { clock } : {}),
  });
  if (redisUrl !== undefined) await expect.poll(() => limiter.state).toBe('redis');
  const service = await startService({ databaseUrl, limiter, ...(clock ? { now: clock } : {}), ...rest });
  closers.push(() => service.close());
  return { service, limiter, call: createCaller(service) };
}

async function issue({ keys }: TestService, perMinute: number, perDay = 1_000_000) {
  return keys.create({ name: 'limited', plan: 'enterprise', perMinute, perDay, expiresAt: null });
}

async function issueFree({ keys }: TestService) {
  return keys.create({ name: 'free', plan: 'free', perMinute: null, perDay: null, expiresAt: null });
}

/** Sends GETs to the URLs in turn, calls to /mcp, over a number of sockets at once; resolves with their statuses. */
async function flood(
  urls: readonly string[],
  key: string,
  requests: number,
  sockets: number,
): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: sockets });
  const tool = toolCall(list.name, { limit: 1 });
  const one = (url: string) =>
    new Promise<number>((resolve, reject) => {
      const { method, headers, body } = url.endsWith('/mcp') ? tool : {};
      const sent = { ...(headers as Record<string, string>), authorization: `Bearer ${key}` };
      request(url, { agent, method, headers: sent }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode ?? 0));
      })
        .on('error', reject)
        .end(body);
    });
  const statuses = await Promise.all(
    Array.from({ length: requests }, (_, n) => one(urls[n % urls.length] ?? '')),
  );
  agent.destroy();
  return statuses;
}

const count = (statuses: number[], status: number) => statuses.filter((one) => one === status).length;

const stores = [
  ['memory', undefined],
  ...(sharedRedis ? [['Redis', sharedRedis.url] as const] : []),
] as const;

describe.each(stores)('in %s', (_store, redisUrl) => {
  test('of 500 requests on 50 sockets against a limit of 60, exactly 60 are admitted', async () => {
    const { service } = await serve({ redisUrl });
    const { key } = await issueFree(service);
    const urls = [`${list.path}?limit=1`, list.trpc, '/mcp'].map((path) => service.url + path);
    const statuses = await flood(urls, key, 500, 50);
    // The others were admitted, whatever their response on a busy machine.
    expect(count(statuses, 429)).toBe(440);
  });

  test('of 500 requests, half of which the key lacks the scope for, exactly 60 are admitted', async () => {
    const { service } = await serve({ redisUrl });
    const { key, apiKey } = await issueFree(service);
    await service.keys.setScopesAll([apiKey.id], [list.scope]);
    const paths = [list.path, otherList.path, list.trpc, `${otherList.trpc}?batch=1`];
    const urls = paths.map((path) => service.url + path);
    const statuses = await flood(urls, key, 500, 50);
    expect(count(statuses, 429)).toBe(440);
    expect(Math.min(count(statuses, 200), count(statuses, 403))).toBeGreaterThan(0);
  });

  test('all protocols are counted together, and a batch counts as its number of calls', async () => {
    const { service, call } = await serve({ redisUrl });
    const { key } = await issue(service, 10);
    const remaining = async (path: string) =>
      Number((await call(path, { key })).headers.get('x-ratelimit-remaining'));
    expect(await remaining(list.path)).toBe(9);
    expect(await remaining(list.trpc)).toBe(8);
    expect(await remaining(`${list.trpc},${list.name},${read.name},nope?batch=1`)).toBe(4);
    expect(await remaining('/v1/nope')).toBe(3);
    expect(await remaining(`/trpc/${Array(21).fill(list.name).join(',')}?batch=1`)).toBe(2);
    for (const [init, left] of [
      [toolCall(list.name), 1],
      [oldToolCall(list.name), 0],
    ] as const)
      expect((await call('/mcp', { ...init, key })).headers.get('x-ratelimit-remaining')).toBe(String(left));
  });

  test('exactly as many free requests of a key are admitted as an address without one has, beside its own limit', async () => {
    const { service, call } = await serve({ redisUrl, anonymousPerMinute: 20 });
    const { key } = await issue(service, 3);
    const statuses = await flood([`${service.url}/v1/key`], key, 100, 20);
    expect(count(statuses, 429)).toBe(80);
    expect((await call(list.path, { key })).headers.get('x-ratelimit-remaining')).toBe('2');
  });

  test('a batch is admitted whole or denied whole, and a denied one counts nothing', async () => {
    const { service, call } = await serve({ redisUrl });
    const { key } = await issue(service, 5);
    expect((await call(`${list.trpc},${list.name},${list.name}?batch=1`, { key })).status).toBe(200);
    const denied = await call(`${list.trpc},${list.name},${list.name}?batch=1`, { key });
    expect([denied.status, denied.body.error.data.error.code]).toEqual([429, 'rate_limit_exceeded']);
    expect(denied.headers.get('x-ratelimit-remaining')).toBe('2');
    expect((await call(`${list.trpc},${list.name}?batch=1`, { key })).status).toBe(200);
    expect((await call(list.path, { key })).status).toBe(429);
  });

  test('a request that the window of a minute denies does not count in that of a day', async () => {
    const { service, call } = await serve({ redisUrl });
    const { key } = await issue(service, 3, 100);
    for (let n = 0; n < 5; n += 1) await call(list.path, { key });
    const { headers } = await call(list.path, { key });
    expect(headers.get('ratelimit')).toMatch(/^"minute";r=0;t=\d+, "day";r=97;t=\d+$/);
    expect(headers.get('ratelimit-policy')).toBe('"minute";q=3;w=60, "day";q=100;w=86400');
  });

  test('a denial says when to try again, over both protocols', async () => {
    const { service, call } = await serve({ redisUrl });
    const { key } = await issue(service, 3);
    for (let n = 0; n < 3; n += 1) await call(list.path, { key });
    for (const path of [list.path, list.trpc]) {
      const sentAt = Math.floor(Date.now() / 1000);
      const { status, headers, body } = await call(path, { key });
      const receivedAt = Math.ceil(Date.now() / 1000);
      const seconds = Number(headers.get('retry-after'));
      expect(status).toBe(429);
      const message = `The rate limit is used up. Try again in ${seconds} s.`;
      expectErrorBody(path === list.path ? body : body.error.data.error, 'rate_limit_exceeded', message);
      expect(seconds).toBeGreaterThanOrEqual(1);
      expect(seconds).toBeLessThanOrEqual(60);
      expect(headers.get('ratelimit')).toContain(`"minute";r=0;t=${seconds}`);
      const reset = Number(headers.get('x-ratelimit-reset'));
      expect(reset).toBeGreaterThanOrEqual(sentAt + seconds);
      expect(reset).toBeLessThanOrEqual(receivedAt + seconds + 1);
    }
  });

  test('as many denials in a minute as the limit allows requests ban the key, over both protocols, until it is unbanned', async () => {
    const { service, call } = await serve({ redisUrl });
    const { key, apiKey } = await issue(service, 3);
    const codes: unknown[] = [];
    for (let n = 0; n < 8; n += 1) codes.push((await call(list.path, { key })).body.code);
    expect(codes.slice(3, 6)).toEqual(Array(3).fill('rate_limit_exceeded'));
    expect(codes.slice(6)).toEqual(Array(2).fill('api_key_banned'));
    const banned = await call(list.trpc, { key });
    expect([banned.status, banned.body.error.data.error.code]).toEqual([429, 'api_key_banned']);
    expect(Number(banned.headers.get('retry-after'))).toBeGreaterThan(290);
    // The ban is stored in the background; an operator sees it from then on.
    await expect.poll(async () => (await service.keys.find(apiKey.id))?.bannedUntil).toBeInstanceOf(Date);
    await service.keys.unban(apiKey.id);
    await expect.poll(async () => (await call(list.path, { key })).body.code).toBe('rate_limit_exceeded');
  });

  test('a change of plan takes effect, and keeps the counts', async () => {
    const { service, call } = await serve({ redisUrl });
    const { key, apiKey } = await issue(service, 20);
    for (let n = 0; n < 21; n += 1) await call(list.path, { key });
    await service.keys.setPlanAll([apiKey.id], { plan: 'pro', perMinute: null, perDay: null });
    await expect.poll(async () => (await call(list.path, { key })).status, { interval: 200 }).toBe(200);
    const { headers } = await call(list.path, { key });
    expect([headers.get('x-ratelimit-limit'), headers.get('x-ratelimit-remaining')]).toEqual(['300', '278']);
  });
});

test('a client that waits for Retry-After is admitted, and the window of a day outlasts that of a minute', async () => {
  let now = Date.now();
  const { service, call } = await serve({ clock: () => now });
  const { key } = await issue(service, 2, 3);
  const use = () => call(list.path, { key });
  await use();
  await use();
  const deniedByMinute = await use();
  now += Number(deniedByMinute.headers.get('retry-after')) * 1000;
  expect((await use()).status).toBe(200);
  const deniedByDay = await use();
  expect(deniedByDay.headers.get('x-ratelimit-limit')).toBe('3');
  expect(Number(deniedByDay.headers.get('retry-after'))).toBe(86_400 - 60);
  now += Number(deniedByDay.headers.get('retry-after')) * 1000 - 1;
  expect((await use()).status).toBe(429);
  now += 1;
  expect((await use()).status).toBe(200);
});

test('a clock of the machine that is set, forth or back, gives a caller no new window', async () => {
  let now = Date.now();
  const service = await startService({ databaseUrl, now: () => now });
  closers.push(() => service.close());
  const { key } = await issue(service, 1);
  const call = createCaller(service);
  expect((await call(list.path, { key })).status).toBe(200);
  for (const setMs of [-3_600_000, -1_000, 61_000, 172_800_000]) {
    now += setMs;
    const { status, headers } = await call(list.path, { key });
    const msLeft = Number(headers.get('x-ratelimit-reset')) * 1000 - now;
    expect([status, msLeft > 0, msLeft <= 61_000]).toEqual([429, true, true]);
  }
});

const LIMIT_HEADERS = [
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'ratelimit-policy',
  'ratelimit',
];

function expectLimitHeaders({ headers }: Pick<TestResponse, 'headers'>): void {
  for (const name of LIMIT_HEADERS) expect([name, headers.get(name)]).not.toEqual([name, null]);
  for (const name of LIMIT_HEADERS.slice(0, 3)) expect(headers.get(name)).toMatch(/^\d+$/);
}

test('every response of all protocols carries the limit headers, whatever its status', async () => {
  // Its last requests find a broken database.
  const own = await createTestDatabase();
  const { service, call } = await serve({ databaseUrl: own, corsOrigins: ['https://shop.example'] });
  const text = { 'content-type': 'text/plain' };
  const preflight = { origin: 'https://shop.example', 'access-control-request-method': 'POST' };
  const requests: [number, string, Parameters<Caller>[1]?][] = [
    [200, list.path],
    [201, create.path, post(create.body)],
    [400, `${list.path}?limit=0`],
    [400, create.path, post('{')],
    [401, list.path, { key: null }],
    [404, read.pathOf(999999)],
    [404, '/v1/nope'],
    [404, '/v1'],
    [405, list.path, { method: 'PROPFIND' }],
    [413, create.path, post('x'.repeat(70_000))],
    [415, create.path, post('{}', text)],
    [200, list.path, { method: 'HEAD' }],
    [401, list.path, { method: 'HEAD', key: null }],
    [405, list.path, { method: 'OPTIONS' }],
    [204, list.path, { method: 'OPTIONS', key: null, headers: preflight }],
    [200, list.trpc],
    [200, create.trpc, post(create.body)],
    [207, `${list.trpc},nope?batch=1`],
    [400, rpcPath(read.name, {})],
    [400, create.trpc, post('{')],
    [401, list.trpc, { key: null }],
    [404, '/trpc/nope'],
    [404, '/trpc'],
    [405, list.trpc, { method: 'PUT' }],
    [413, create.trpc, post('x'.repeat(70_000))],
    [415, create.trpc, post('{}', text)],
    [200, list.trpc, { method: 'HEAD' }],
    [204, create.trpc, { method: 'OPTIONS', key: null, headers: preflight }],
    [200, '/mcp', toolCall(list.name)],
    [200, '/mcp', toolCall(list.name, { limit: 0 })],
    [200, '/mcp', oldToolCall(create.name, create.body)],
    [200, '/mcp', message('tools/list')],
    [200, '/mcp', message('server/discover')],
    [202, '/mcp', post({ jsonrpc: '2.0', method: 'notifications/initialized' })],
    [400, '/mcp', post('{')],
    [401, '/mcp', { ...toolCall(list.name), key: null }],
    [403, '/mcp', toolCall(list.name, {}, { origin: 'https://evil.example' })],
    [404, '/mcp', message('nope')],
    [404, '/mcp/nope'],
    [405, '/mcp'],
    [413, '/mcp', post('x'.repeat(70_000))],
    [415, '/mcp', post('{}', text)],
    [204, '/mcp', { method: 'OPTIONS', key: null, headers: preflight }],
  ];
  for (const [status, path, init] of requests) {
    const response = await call(path, init);
    expect([path, response.status]).toEqual([path, status]);
    expectLimitHeaders(response);
    expect(response.headers.has('retry-after')).toBe(false);
  }
  const stream = await fetch(`${service.url}${list.trpc},nope?batch=1`, {
    headers: { authorization: `Bearer ${service.key}`, 'trpc-accept': 'application/jsonl' },
  });
  await stream.text();
  expectLimitHeaders(stream);
  await breakTable(service.database.pool, TABLE);
  for (const path of [list.path, list.trpc]) {
    const response = await call(path);
    expect(response.status).toBe(500);
    expectLimitHeaders(response);
  }
});

test('requests without a valid key are counted per address, whatever they request', async () => {
  const { call } = await serve({ anonymousPerMinute: 5 });
  const statuses: number[] = [];
  const states: (string | null)[] = [];
  for (const path of [
    list.path,
    list.trpc,
    '/v1/nope',
    read.pathOf(1),
    '/trpc/nope',
    list.path,
    list.trpc,
    '/v1/nope',
  ]) {
    const { status, headers } = await call(path, { key: path === read.pathOf(1) ? 'nonsense' : null });
    statuses.push(status);
    states.push(headers.get('x-ratelimit-remaining'));
    expect(headers.get('x-ratelimit-limit')).toBe('5');
    expect(headers.get('ratelimit-policy')).toBe('"minute";q=5;w=60');
  }
  expect(statuses).toEqual([401, 401, 404, 401, 404, 429, 429, 404]);
  expect(states).toEqual(['4', '3', '2', '1', '0', '0', '0', '0']);
  expect((await call(list.path)).status).toBe(200);
});

test('a request that gets a 404 does not count towards a ban', async () => {
  const { service, call } = await serve();
  const { key } = await issue(service, 3);
  for (let n = 0; n < 3; n += 1) await call(list.path, { key });
  for (let n = 0; n < 10; n += 1) expect((await call('/v1/nope', { key })).status).toBe(404);
  expect((await call(list.path, { key })).body.code).toBe('rate_limit_exceeded');
});

test('a valid key is counted on 404 and 405 as well', async () => {
  const { service, call } = await serve();
  const { key } = await issue(service, 3);
  await call('/v1/nope', { key });
  await call(list.path, { key, method: 'PROPFIND' });
  await call('/trpc/nope', { key });
  expect((await call(list.path, { key })).status).toBe(429);
});

test('forwarded addresses are trusted from configured proxies only', async () => {
  const from = (call: Caller, address: string) =>
    call(list.path, { key: null, headers: { 'x-forwarded-for': address } });
  const direct = await serve({ anonymousPerMinute: 2 });
  for (const address of ['203.0.113.1', '203.0.113.2']) await from(direct.call, address);
  expect((await from(direct.call, '203.0.113.3')).status).toBe(429);

  const proxied = await serve({ anonymousPerMinute: 2, trustProxy: ['127.0.0.0/8'] });
  for (const address of ['203.0.113.1', '203.0.113.1']) await from(proxied.call, address);
  expect((await from(proxied.call, '203.0.113.1')).status).toBe(429);
  expect((await from(proxied.call, '198.51.100.9, 203.0.113.1')).status).toBe(429);
  expect((await from(proxied.call, '203.0.113.2')).status).toBe(401);
  for (const host of ['1', '2']) await from(proxied.call, `2001:db8:0:1::${host}`);
  expect((await from(proxied.call, '2001:db8:0:1:ffff::3')).status).toBe(429);
  expect((await from(proxied.call, '2001:db8:0:2::1')).status).toBe(401);
});

test.runIf(sharedRedis)(
  'two services on one Redis and one PostgreSQL together admit exactly the limit, over all protocols',
  async () => {
    const DATABASE_URL = databaseUrl;
    const REDIS_URL = sharedRedis?.url ?? '';
    const { key } = await runKeys({ DATABASE_URL }, 'create', '--name', 'x', '--plan', 'free');
    const nodes: Program[] = [1, 2].map(() =>
      run('main', [], { DATABASE_URL, REDIS_URL, PORT: '0', APP_ENV: 'staging' }),
    );
    closers.push(async () => {
      for (const { child } of nodes) child.kill('SIGTERM');
      await Promise.all(nodes.map(({ ended }) => ended));
    });
    const urls = await Promise.all(
      nodes.map(async (node) => {
        const url = await untilListening(node);
        const call = createCaller({ url, key });
        await expect.poll(async () => (await call('/health/ready', { key: null })).body.limits).toBe('redis');
        return url;
      }),
    );
    const statuses = await Promise.all(
      urls.map((url) =>
        flood([`${url}${list.path}?limit=1`, `${url}${list.trpc}`, `${url}/mcp`], key, 250, 25),
      ),
    );
    // The others were admitted, whatever their response on a busy machine.
    expect(count(statuses.flat(), 429)).toBe(440);
  },
);

test.runIf(canStartRedis())(
  'without its Redis, a service continues, reports that it is degraded, and recovers by itself',
  async () => {
    const redis = (await startRedis()) as RedisServer;
    closers.push(() => redis.close());
    const { service, call } = await serve({ redisUrl: redis.url });
    const { key } = await issue(service, 1_000);
    const ready = async () => (await call('/health/ready', { key: null })).body;
    await expect.poll(ready).toEqual({ status: 'ok', database: 'ok', limits: 'redis' });
    const served = () => untilServed(() => call(list.path, { key }));
    await served();
    await redis.kill();
    for (let n = 0; n < 5; n += 1) expect((await served()).status).toBe(200);
    await expect.poll(ready).toEqual({ status: 'degraded', database: 'ok', limits: 'degraded' });
    expect(Number((await call(list.path, { key })).headers.get('x-ratelimit-remaining'))).toBeLessThan(995);
    await redis.run();
    await expect.poll(async () => (await ready()).limits).toBe('redis');
    expect((await call(list.path, { key })).status).toBe(200);
  },
);
