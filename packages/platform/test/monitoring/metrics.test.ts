import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { createLimiter } from '@animal-store/limits';
import { createCaller, message, oldToolCall, post, rpcPath, toolCall } from '@animal-store/platform/testing';
import { pino } from 'pino';
import { afterEach, expect, test } from 'vitest';
import { create, definition, list, read, readOthers, TABLE } from '#operations-under-test';
import { createCachedCheck } from '../../src/monitoring/readiness.js';
import {
  createTestDatabase,
  startService,
  type TestService,
  type TestServiceOptions,
} from '../support/test-service.js';

const NO_LIMITS = { perMinute: null, perDay: null };
const databaseUrl = await createTestDatabase();
const closers: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function serve(options: TestServiceOptions = {}) {
  const service = await startService({ databaseUrl, ...options });
  closers.push(() => service.close());
  return { service, call: createCaller(service) };
}

async function scrape({ url }: Pick<TestService, 'url'>): Promise<string> {
  const response = await fetch(`${url}/metrics`);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  return response.text();
}

/** The names and labels of the request metrics; those of others depend on the process, such as kinds of handles. */
const seriesOf = (text: string) =>
  text
    .split('\n')
    .filter((line) => /^boatyard_(http|limiter)_/.test(line))
    .map((line) => line.slice(0, line.lastIndexOf(' ')));

/** The counts of requests by their labels. */
const counts = (text: string) =>
  Object.fromEntries(
    [...text.matchAll(/^boatyard_http_request_duration_seconds_count\{(.*)\} (\d+)$/gm)].map(
      ([, labels, count]) => [labels?.replaceAll(/\w+="([^"]*)",?/g, '$1 ').trim(), Number(count)],
    ),
  );

test('requests are counted by operation, protocol and status, and a batch of one operation as one of that', async () => {
  const { service, call } = await serve();
  await call(list.path);
  await call(list.path, { key: null });
  await call(create.path, post(create.body));
  await call(rpcPath(list.name, { limit: 0 }));
  await call(`${list.trpc},${read.name},nope?batch=1`);
  await call(`${list.trpc}?batch=1`);
  await call(`${create.trpc},${create.name}?batch=1`, post({ 0: create.body, 1: create.body }));
  await call('/mcp', toolCall(list.name));
  await call('/mcp', oldToolCall(list.name, { limit: 0 }));
  await call('/mcp', message('tools/list'));
  await call('/v1/nope');
  await call('/docs', { method: 'HEAD' });
  await expect
    .poll(async () => counts(await scrape(service)))
    .toMatchObject({
      [`${list.name} rest 200`]: 1,
      [`${list.name} rest 401`]: 1,
      [`${create.name} rest 201`]: 1,
      [`${list.name} trpc 400`]: 1,
      [`${list.name} trpc 200`]: 1,
      [`${create.name} trpc 200`]: 1,
      'batch trpc 207': 1,
      [`${list.name} mcp 200`]: 1,
      [`${list.name} mcp 400`]: 1,
      'unknown mcp 200': 1,
      'unknown rest 404': 1,
      'unknown other 200': expect.any(Number),
    });
});

test('the set of labels does not grow, whatever clients send', async () => {
  const { service, call } = await serve();
  const attack = async (mark: string) => {
    for (const path of [
      `/v1/${mark}`,
      `/trpc/${mark}`,
      `/trpc/${mark},x?batch=1`,
      `/${mark}`,
      `/docs/${mark}`,
    ]) {
      for (const method of ['GET', 'POST', 'DELETE', 'PROPFIND']) await call(path, { method });
    }
    await call(`${list.trpc},${mark}?batch=1`);
    for (const init of [message(mark), toolCall(mark), oldToolCall(mark)]) await call('/mcp', init);
    await call(read.pathOf(mark), { headers: { 'x-request-id': mark, 'user-agent': mark } });
    await call(list.path, { key: mark });
  };
  await attack('first');
  await scrape(service);
  const before = seriesOf(await scrape(service));
  for (let n = 0; n < 20; n += 1) await attack(`mark${n}`);
  const text = await scrape(service);
  expect(seriesOf(text)).toHaveLength(before.length);
  expect(text).not.toMatch(/first|mark\d/);
});

test('decisions of the limiter are counted by outcome, store and plan', async () => {
  const { service, call } = await serve();
  const { key } = await service.keys.create({
    ...{ name: 'x', plan: 'enterprise', perMinute: 2, perDay: 9, expiresAt: null },
  } as const);
  for (let n = 0; n < 7; n += 1) await call(list.path, { key });
  await call(list.path, { key: null });
  const text = await scrape(service);
  const count = (outcome: string, store: string, plan: string) =>
    Number(
      text.split(
        `boatyard_limiter_decisions_total{outcome="${outcome}",store="${store}",plan="${plan}"} `,
      )[1]?.[0],
    );
  expect(count('admitted', 'memory', 'enterprise')).toBe(2);
  expect(count('rate_limit_exceeded', 'memory', 'enterprise')).toBe(2);
  expect(count('api_key_banned', 'memory', 'enterprise')).toBe(3);
  expect(count('admitted', 'memory', 'anonymous')).toBe(1);
  expect(count('rate_limit_exceeded', 'redis', 'free')).toBe(0);
});

test("every metric carries the service's prefix, beside those of every process and of Node.js", async () => {
  const { service } = await serve();
  const names = [...(await scrape(service)).matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name);
  expect(names).toContain('boatyard_build_info');
  expect(names.filter((name) => !/^(boatyard|process|nodejs)_/.test(name ?? ''))).toEqual([]);
});

test('a request that takes less than a millisecond has buckets of its own', async () => {
  const { service, call } = await serve();
  await call(list.path);
  const text = await scrape(service);
  const buckets = /^boatyard_http_request_duration_seconds_bucket\{le="([^"]+)"/gm;
  const bounds = [...text.matchAll(buckets)].map(([, bound]) => Number(bound));
  expect(bounds.slice(0, 3)).toEqual([0.00025, 0.0005, 0.001]);
});

test('connections of clients are counted', async () => {
  const { service } = await serve();
  const readMetric = async (name: string) =>
    Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(await scrape(service))?.[1]);
  // Scrapes have connections of their own, but not as many.
  const sockets = Array.from({ length: 50 }, () => connect(service.port, '127.0.0.1'));
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  await expect.poll(() => readMetric('boatyard_http_connections')).toBeGreaterThanOrEqual(50);
  for (const socket of sockets) socket.destroy();
  await expect.poll(() => readMetric('boatyard_http_connections')).toBeLessThan(10);
  expect(await readMetric('boatyard_http_connections_accepted_total')).toBeGreaterThanOrEqual(50);
});

test('pool statistics, event-loop delay and process state are exported', async () => {
  const { service, call } = await serve();
  await call(list.path);
  const text = await scrape(service);
  expect(text).toMatch(/^boatyard_database_pool_connections [1-9]/m);
  expect(text).toMatch(/^boatyard_database_pool_idle_connections [1-9]/m);
  expect(text).toMatch(/^boatyard_database_pool_waiting_queries 0$/m);
  for (const name of ['nodejs_eventloop_lag_p99_seconds', 'process_resident_memory_bytes']) {
    expect(text).toMatch(new RegExp(`^${name} \\d`, 'm'));
  }
  for (const flag of [
    'boatyard_limits_degraded 0',
    'boatyard_database_ready 1',
    'boatyard_service_overloaded{reason="queue"} 0',
  ]) {
    expect(text).toContain(`\n${flag}\n`);
  }
});

test('a degraded state is exported', async () => {
  const log = pino({ level: 'silent' });
  const limiter = await createLimiter({
    windows: definition.windows,
    redisUrls: ['redis://127.0.0.1:1'],
    log,
  });
  closers.push(() => limiter.close());
  const { service, call } = await serve({
    limiter,
    checkReadiness: () => Promise.reject(new Error('unavailable')),
  });
  expect((await call(list.path)).status).toBe(200);
  const text = await scrape(service);
  expect(text).toContain('\nboatyard_limits_degraded 1\n');
  expect(text).toContain('\nboatyard_database_ready 0\n');
  expect(text).toContain(
    'boatyard_limiter_decisions_total{outcome="admitted",store="degraded",plan="enterprise"} 1',
  );
});

test('the version, query durations and the number of banned keys by plan are exported', async () => {
  const { service, call } = await serve();
  const { key, apiKey } = await service.keys.create({
    name: 'x',
    plan: 'free',
    expiresAt: null,
    ...NO_LIMITS,
  });
  await call(list.path);
  await call(create.path, post(create.body));
  await readOthers(await service.serviceDatabase.loadPrisma());
  const { version } = JSON.parse(await readFile('package.json', 'utf8'));
  const text = await scrape(service);
  expect(text).toContain(`\nboatyard_build_info{version="${version}",node_version="${process.version}"} 1\n`);
  for (const statement of [`${TABLE}-list`, `${TABLE}-create`, 'prisma']) {
    expect(text).toMatch(
      new RegExp(`^boatyard_database_query_duration_seconds_count\\{statement="${statement}"\\} [1-9]`, 'm'),
    );
  }
  expect(text).not.toContain('boatyard_redis_command_duration_seconds');
  expect(text).toContain('\nboatyard_api_keys_banned{plan="free"} 0\n');
  expect(text).toContain('\nboatyard_api_key_usage_dropped 0\n');

  await service.keys.ban(apiKey.id, 300);
  await expect.poll(() => scrape(service)).toContain('\nboatyard_api_keys_banned{plan="free"} 1\n');
  expect(await scrape(service)).toContain('\nboatyard_api_keys_banned{plan="pro"} 0\n');
  expect((await call(list.path, { key })).body.code).toBe('api_key_banned');
  await service.keys.unban(apiKey.id);
  await expect.poll(() => scrape(service)).toContain('\nboatyard_api_keys_banned{plan="free"} 0\n');
});

test('keys that expire within seven days are counted by plan', async () => {
  const { service } = await serve();
  const plan = { plan: 'pro', perMinute: null, perDay: null } as const;
  const inDays = (days: number) => new Date(Date.now() + days * 86_400_000);
  for (const expiresAt of [inDays(-1), inDays(6.9), inDays(7.1), null])
    await service.keys.create({ name: 'x', expiresAt, ...plan });
  const text = await scrape(service);
  expect(text).toContain('\nboatyard_api_keys_expiring{plan="pro"} 1\n');
  expect(text).toContain('\nboatyard_api_keys_expiring{plan="free"} 0\n');
});

test('a query that fails is part of the durations', async () => {
  const { service } = await serve();
  const countOf = async (statement: string) =>
    Number(new RegExp(`_count\\{statement="${statement}"\\} (\\d+)`).exec(await scrape(service))?.[1] ?? 0);
  await expect(
    service.serviceDatabase.reads.query({ name: 'broken', text: 'SELECT 1/0' }, []),
  ).rejects.toThrow();
  expect(await countOf('broken')).toBe(1);
  const before = await countOf('prisma');
  const prisma = await service.serviceDatabase.loadPrisma();
  await expect(prisma.$queryRaw`SELECT 1/0`).rejects.toThrow();
  expect(await countOf('prisma')).toBeGreaterThan(before);
});

test.each([
  ['fails', () => Promise.reject(new Error('unavailable'))],
  ['does not respond', () => new Promise<never>(() => {})],
])('while the count of keys %s, a scrape succeeds without it', async (_, countKeys) => {
  const { service } = await serve({ countKeys });
  const text = await scrape(service);
  expect(text).toContain('\nboatyard_database_ready 1\n');
  expect(text).not.toMatch(/^boatyard_api_keys_(banned|expiring)/m);
});

test('keys most of whose requests are denied show as a number, whatever their number', async () => {
  const { service } = await serve({ usage: { count() {}, waiting: 0, dropped: 0, mostlyDenied: 3 } });
  expect(await scrape(service)).toContain('\nboatyard_api_keys_mostly_denied 3\n');
});

test('with METRICS_PORT the server of the API has neither metrics nor health', async () => {
  const { call } = await serve({ metricsPort: 1 });
  for (const path of ['/metrics', '/health/live', '/health/ready']) {
    expect(await call(path, { key: null })).toMatchObject({ status: 404, body: { code: 'not_found' } });
  }
  expect((await call(list.path)).status).toBe(200);
});

test('any number of readiness probes queries the database once a second at most', async () => {
  let queryCount = 0;
  let nowMs = 0;
  const probe = createCachedCheck(
    async () => {
      queryCount += 1;
    },
    () => nowMs,
  );
  await Promise.all(Array.from({ length: 100 }, probe));
  nowMs = 999;
  await probe();
  expect(queryCount).toBe(1);
  nowMs = 1_000;
  await probe();
  expect(queryCount).toBe(2);
});

test('a failed readiness check is not remembered: the first probe after the recovery succeeds', async () => {
  let isUnavailable = true;
  const checkReadiness = async () => {
    if (isUnavailable) throw new Error('unavailable');
    return undefined;
  };
  const { call } = await serve({ checkReadiness });
  const probe = async () => (await call('/health/ready', { key: null })).status;
  expect(await probe()).toBe(503);
  isUnavailable = false;
  expect(await probe()).toBe(200);
});

test('a service is not ready while the database lacks a migration', async () => {
  const { service, call } = await serve();
  const { pool } = service.database;
  const probe = async () => (await call('/health/ready', { key: null })).status;
  expect(await probe()).toBe(200);
  await pool.query('CREATE TABLE kept AS SELECT * FROM _prisma_migrations');
  await pool.query('DELETE FROM _prisma_migrations');
  await expect.poll(probe).toBe(503);
  await pool.query('INSERT INTO _prisma_migrations SELECT * FROM kept');
  expect(await probe()).toBe(200);
});

test('the readiness probe responds, whatever the database does', async () => {
  const { call } = await serve({ checkReadiness: () => new Promise<never>(() => {}) });
  const probes = [1, 2, 3].map(() => call('/health/ready', { key: null }));
  for (const { status, body } of await Promise.all(probes))
    expect([status, body.status]).toEqual([503, 'unavailable']);
});

test('readiness says draining as soon as the service shuts down, while requests are still served', async () => {
  const { service } = await serve();
  const beginRequest = async (rest: string) => {
    const socket = connect(service.port, '127.0.0.1');
    await once(socket, 'connect');
    let received = '';
    socket.setEncoding('utf8').on('data', (chunk) => {
      received += chunk;
    });
    socket.write('GET ');
    return async () => {
      socket.write(`${rest} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.key}\r\n\r\n`);
      await once(socket, 'close');
      return received;
    };
  };
  const finishProbe = await beginRequest('/health/ready');
  const finishRequest = await beginRequest(list.path);
  await createCaller(service)(list.path);
  const closed = closers.pop()?.();
  expect(await finishProbe()).toMatch(/^HTTP\/1\.1 503 [\s\S]*\{"status":"draining"\}$/);
  expect(await finishRequest()).toMatch(/^HTTP\/1\.1 200 /);
  await closed;
});
