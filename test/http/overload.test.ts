import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import type { AppOptions } from '../../src/app.js';
import { type Environment, run } from '../support/process.js';
import { createCaller, createTestDatabase, startService, type TestService } from '../support/test-service.js';

const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function serve(options: Partial<AppOptions> = {}) {
  const service = await startService(options);
  closers.push(() => service.close());
  return { service, call: createCaller(service) };
}

/** Every face refuses in its own shape; what watches the service goes on. */
async function expectOverloaded({ url }: TestService, call: ReturnType<typeof createCaller>): Promise<void> {
  for (const path of ['/v1/pets', '/trpc/listPets']) {
    const { status, headers, body } = await call(path);
    expect([status, headers.get('retry-after')]).toEqual([503, '2']);
    expect(headers.get('x-ratelimit-remaining')).toMatch(/^\d+$/);
    const error = path.startsWith('/trpc') ? body.error.data.error : body;
    expect(error).toEqual({
      code: 'service_unavailable',
      message: expect.stringContaining('overloaded'),
      status: 503,
    });
  }
  for (const path of ['/health/live', '/health/ready'])
    expect((await call(path, { key: null })).status).toBe(200);
  expect(await (await fetch(`${url}/metrics`)).text()).toContain('\nservice_overloaded 1\n');
}

function block(durationMs: number): void {
  const until = performance.now() + durationMs;
  while (performance.now() < until);
}

test('an event loop that is late for long refuses requests, and serves again when it is free', async () => {
  const { service, call } = await serve({ overload: { delayMs: 20, sampleMs: 5 } });
  const busy = setInterval(() => block(60), 1);
  try {
    await expect.poll(async () => (await call('/v1/pets')).status, { timeout: 10_000 }).toBe(503);
    await expectOverloaded(service, call);
  } finally {
    clearInterval(busy);
  }
  await expect.poll(async () => (await call('/v1/pets')).status).toBe(200);
});

test('one long task is no overload', async () => {
  const { call } = await serve({ overload: { delayMs: 500, sampleMs: 10 } });
  const pending = Promise.all(Array.from({ length: 20 }, () => call('/v1/pets')));
  block(800);
  expect(new Set((await pending).map(({ status }) => status))).toEqual(new Set([200]));
});

test('a queue for the database that is too long refuses requests, and serves again when it is short', async () => {
  const pool = { totalCount: 10, idleCount: 0, waitingCount: 1_000 };
  const { service, call } = await serve({ pool });
  expect((await call('/v1/pets')).status).toBe(200);
  pool.waitingCount += 1;
  await expectOverloaded(service, call);
  expect((await call('/v1/nope')).status).toBe(404);
  expect((await call('/v1/pets', { key: null })).status).toBe(401);
  pool.waitingCount = 0;
  expect((await call('/v1/pets')).status).toBe(200);
});

async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  closers.push(() => socket.destroy());
  return socket;
}

/** What comes back until the service ends the connection, and how long that took. */
async function received(socket: Socket): Promise<{ text: string; durationMs: number }> {
  const started = performance.now();
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk) => {
    text += chunk;
  });
  if (!socket.closed) await once(socket, 'close');
  return { text, durationMs: performance.now() - started };
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

test.each([
  ['headers that do not end', 'GET /v1/pets HTTP/1.1\r\nHost: x\r\n'],
  ['a body that does not end', 'POST /health/live HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n{'],
  ['a connection that says nothing', ''],
])('%s: the connection ends after the time-out', async (_name, bytes) => {
  const connections = { headersTimeout: 300, requestTimeout: 300, connectionsCheckingInterval: 50 };
  const { service } = await serve({ connections });
  const socket = await open(service.port);
  socket.write(bytes);
  const { durationMs } = await received(socket);
  expect(durationMs).toBeGreaterThan(200);
  expect(durationMs).toBeLessThan(2_000);
});

test('a connection that is idle after its answer ends after the time-out', async () => {
  const { service } = await serve({ connections: { keepAliveTimeout: 200 } });
  const socket = await open(service.port);
  socket.write(get('/health/live'));
  const { text, durationMs } = await received(socket);
  expect(text).toMatch(/^HTTP\/1\.1 200 [\s\S]*keep-alive/);
  expect(durationMs).toBeLessThan(4_000);
});

test('a connection ends with the answer to its last request, and what was sent after it gets none', async () => {
  const { service } = await serve({ connections: { maxRequestsPerSocket: 2 } });
  const socket = await open(service.port);
  socket.write(get('/health/live').repeat(4));
  const { text } = await received(socket);
  expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200']);
  expect(text.match(/^connection: .*$/gim)?.at(-1)).toMatch(/close/);
});

test('connections beyond the cap are closed at once, and the others go on', async () => {
  const { service } = await serve({ connections: { maxConnections: 2 } });
  const first = await open(service.port);
  await open(service.port);
  expect((await received(await open(service.port))).text).toBe('');
  first.write(get('/health/live'));
  expect(String(await once(first, 'data'))).toMatch(/^HTTP\/1\.1 200 /);
});

/** The built service in a process of its own, with a key that no limit stops. */
async function startProcess() {
  const environment: Environment = { DATABASE_URL: await createTestDatabase(), APP_ENV: 'staging' };
  const limits = ['--plan', 'enterprise', '--per-minute', '1000000', '--per-day', '1000000'];
  const create = run('cli/program', ['keys', 'create', '--name', 'x', ...limits, '--json'], environment);
  await create.ended;
  const { key } = JSON.parse(create.output());
  const program = run('main', [], { ...environment, PORT: '0', ANONYMOUS_PER_MINUTE: '1000000' });
  closers.push(async () => {
    program.child.kill('SIGKILL');
    await program.ended;
  });
  const [, url = ''] = await program.until(/listening on (http:[^"]+)/);
  return { url, port: Number(new URL(url).port), key };
}

test('200 half-open sockets and 2,000 idle ones do not keep others from being served', async () => {
  const { url, port, key } = await startProcess();
  const call = createCaller({ url, key });
  const halfOpen = await Promise.all(Array.from({ length: 200 }, () => open(port)));
  for (const socket of halfOpen) socket.write('GET /v1/pets HTTP/1.1\r\nHost: x\r\nX-Slow: ');
  for (let n = 0; n < 20; n += 1) {
    const idle = await Promise.all(Array.from({ length: 100 }, () => open(port)));
    for (const socket of idle.slice(50)) socket.write(get('/health/live'));
  }
  const durations: number[] = [];
  for (let n = 0; n < 100; n += 1) {
    const started = performance.now();
    expect((await call(n % 2 === 0 ? '/v1/pets' : '/trpc/listPets')).status).toBe(200);
    durations.push(performance.now() - started);
  }
  expect(durations.sort((a, b) => a - b)[50]).toBeLessThan(200);
  expect(halfOpen.filter((socket) => !socket.closed)).toHaveLength(200);
}, 60_000);

interface Hostile {
  readonly method: string;
  readonly path: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
}

const json = { 'content-type': 'application/json' };
const bodies: (string | Buffer)[] = [
  ...['', '{', '['.repeat(60_000), 'x'.repeat(70_000), '{"__proto__":{"name":"x","categoryId":1}}'],
  ...[`{"name":"x","categoryId":${'9'.repeat(60_000)}}`, '{"name":"\\u0000","categoryId":1}'],
  ...[Buffer.from([0x22, 0xff, 0xfe, 0x22]), Buffer.alloc(100)],
];

/** One of every kind, with a mark that no other has. */
const hostileOf = (mark: string): Hostile[] => [
  ...bodies.flatMap((body) =>
    ['/v1/pets', '/trpc/createPet'].map((path) => ({ method: 'POST', path, headers: json, body })),
  ),
  { method: 'POST', path: '/v1/pets', headers: { 'content-type': mark }, body: '{}' },
  { method: 'POST', path: `/${mark}`, headers: json, body: 'x'.repeat(70_000) },
  ...['DELETE', 'PROPFIND', 'OPTIONS'].map((method) => ({ method, path: '/v1/pets' })),
  ...['/v1//pets', `/v1/${mark}`, `/v1/pets/${mark}`, '/v1/%zz', `/${mark}`, '/trpc/__proto__'].map(
    (path) => ({
      method: 'GET',
      path,
    }),
  ),
  { method: 'GET', path: `/trpc/${mark},listPets?batch=1` },
  { method: 'GET', path: `/trpc/${'x,'.repeat(3_000)}?batch=1` },
  { method: 'GET', path: '/trpc/listPets?input={' },
  { method: 'GET', path: `/v1/pets?${'a=1&'.repeat(2_000)}limit=0` },
  { method: 'GET', path: '/v1/pets', headers: { authorization: `Bearer as_test_${mark}` } },
  { method: 'GET', path: '/v1/pets', headers: { 'x-request-id': mark, 'idempotency-key': mark } },
  { method: 'GET', path: '/v1/pets', headers: { x: 'y'.repeat(20_000) } },
];

function send(url: string, agent: Agent, key: string, { method, path, headers, body }: Hostile) {
  return new Promise<void>((resolve) => {
    const options = { agent, method, path, headers: { authorization: `Bearer ${key}`, ...headers } };
    request(url, options, (response) => response.resume().on('close', resolve))
      .on('error', () => resolve())
      .end(body);
  });
}

/** So many requests, in the order of their kinds, 40 at once. */
async function attack(url: string, key: string, requests: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 40 });
  const kinds = hostileOf('').length;
  let sent = 0;
  const work = async () => {
    while (sent < requests) {
      const number = sent;
      sent += 1;
      const hostile = hostileOf(`mark${number}`)[number % kinds];
      if (hostile !== undefined) await send(url, agent, key, hostile);
    }
  };
  await Promise.all(Array.from({ length: 40 }, work));
  agent.destroy();
}

/** What is counted of requests that were answered; some clients may leave before, or none. */
const counted = /^(http|limiter)_(?!.*status="499").*$/gm;

test('20,000 hostile requests leave memory within 150 MB of where it was, and no new labels', async () => {
  const { url, key } = await startProcess();
  const look = async () => {
    const text = await (await fetch(`${url}/metrics`)).text();
    const bytes = Number(/^process_resident_memory_bytes (\d+)/m.exec(text)?.[1]);
    const answered = [...text.matchAll(/^http_request_duration_seconds_count\{.*\} (\d+)$/gm)];
    const total = answered.reduce((sum, [, count]) => sum + Number(count), 0);
    return { megabytes: bytes / 2 ** 20, labels: text.match(counted)?.length, total, text };
  };
  await attack(url, key, 1_000);
  await look();
  const before = await look();
  await attack(url, key, 20_000);
  const after = await look();
  expect(after.megabytes - before.megabytes).toBeLessThan(150);
  expect(after.labels).toBe(before.labels);
  expect(after.text).not.toContain('mark');
  expect(after.total - before.total).toBeGreaterThan(18_000);
  expect((await createCaller({ url, key })('/v1/pets')).status).toBe(200);
}, 120_000);
