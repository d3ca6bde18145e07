import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createCaller, oldToolCall } from '@animal-store/platform/testing';
import { pino } from 'pino';
import { afterEach, expect, test } from 'vitest';
import { z } from 'zod';
import { definition, list, resources } from '#operations-under-test';
import { createProcedure } from '../../src/operations/builder.js';
import type { Resource } from '../../src/operations/resource.js';
import { expectErrorBody, expectMcpErrorBody } from '../support/expect-error-body.js';
import {
  createTestDatabase,
  startService,
  type TestService,
  type TestServiceOptions,
} from '../support/test-service.js';

const databaseUrl = await createTestDatabase();
const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function serve(options: TestServiceOptions = {}) {
  const service = await startService({ databaseUrl, ...options });
  closers.push(() => service.close());
  return { service, call: createCaller(service) };
}

/** A line of /metrics */
const metric = (line: string) => new RegExp(`^${definition.identity.metricsPrefix}${line}$`, 'm');

/** Every protocol denies requests in its own shape; health checks and metrics still respond. */
async function expectOverloaded({ url }: TestService, call: ReturnType<typeof createCaller>): Promise<void> {
  const paths = [list.path, list.trpc, '/v1/nope', '/health/live', '/health/ready'];
  // All at once: while the event loop lags, each of them takes seconds.
  const [metrics, withoutKey, tool, rest, rpc, ...others] = await Promise.all([
    fetch(`${url}/metrics`).then((response) => response.text()),
    call(list.path, { key: null }),
    call('/mcp', oldToolCall(list.name)),
    ...paths.map((path) => call(path)),
  ]);
  for (const response of [rest, rpc, tool]) {
    expect([response?.status, response?.headers.get('retry-after')]).toEqual([503, '2']);
    expect(response?.headers.get('x-ratelimit-remaining')).toMatch(/^\d+$/);
  }
  const message = expect.stringContaining('overloaded');
  for (const error of [rest?.body, rpc?.body.error.data.error])
    expectErrorBody(error, 'service_unavailable', message);
  expectMcpErrorBody(tool.body, 'service_unavailable', message);
  expect(others.map(({ status }) => status)).toEqual([404, 200, 200]);
  expect(withoutKey.status).toBe(401);
  expect(metrics).toMatch(metric('service_overloaded\\{reason="event_loop"\\} 1'));
}

function block(durationMs: number): void {
  const until = performance.now() + durationMs;
  while (performance.now() < until);
}

test('requests are denied while the event loop lags, and served again once it recovers', async () => {
  const { service, call } = await serve({ overload: { delayMs: 100, sampleIntervalMs: 20 } });
  // A process that listens loads what requests need: not while it is late.
  await expect.poll(async () => (await call('/health/ready')).status).toBe(200);
  const busy = setInterval(() => block(200), 1);
  try {
    await expect.poll(async () => (await call(list.path)).status).toBe(503);
    await expectOverloaded(service, call);
  } finally {
    clearInterval(busy);
  }
  await expect.poll(async () => (await call(list.path)).status).toBe(200);
});

const get = (path: string, header = '') => `GET ${path} HTTP/1.1\r\nHost: x\r\n${header}\r\n`;

/** Rejected when its key and limit have been checked: a response does not depend on how busy the database is. */
const REJECTED = `${list.path}?limit=0`;

/** Sends each text on a connection of its own, and returns the log lines of the requests, in their order. */
async function sendTogether(
  texts: (key: string) => readonly string[],
  options: TestServiceOptions = {},
): Promise<readonly string[]> {
  let written = '';
  const write = (line: string) => {
    written += line;
  };
  const { service, call } = await serve({ ...options, log: pino({ level: 'debug' }, { write }) });
  await call(list.path);
  const all = texts(service.key);
  const senders = await Promise.all(
    all.map(async (text) => {
      const socket = connect(service.port, '127.0.0.1');
      closers.push(() => socket.destroy());
      await once(socket, 'connect');
      return () => socket.write(text);
    }),
  );
  written = '';
  for (const send of senders) send();
  const served = () => written.split('\n').filter((line) => line.includes('"msg":"request"'));
  await expect
    .poll(() => served().length, { timeout: 20_000 })
    .toBe(all.join('').split('HTTP/1.1').length - 1);
  return served();
}

test('known keys and probes overtake a flood of requests without a key or to unknown paths', async () => {
  const served = await sendTogether((key) => [
    ...Array.from({ length: 40 }, () => get(list.path).repeat(8) + get('/x').repeat(8)),
    get(REJECTED, `Authorization: Bearer ${key}\r\n`),
    get(REJECTED, `authorization: bearer  ${key}\r\n`),
    get('/health/live'),
  ]);
  expect(served.findLastIndex((line) => line.includes('"keyId"'))).toBeLessThan(300);
  expect(served.findIndex((line) => line.includes('/health/live'))).toBeLessThan(300);
});

test('known keys overtake a flood of requests to the paths of probes that have a port of their own', async () => {
  const served = await sendTogether(
    (key) => [
      ...Array.from({ length: 40 }, () => get('/metrics').repeat(16)),
      get(REJECTED, `Authorization: Bearer ${key}\r\n`),
    ],
    { metricsPort: 9090 },
  );
  expect(served.findIndex((line) => line.includes('"keyId"'))).toBeLessThan(300);
});

test('a single long task is not an overload', async () => {
  const { call } = await serve({ overload: { delayMs: 500, sampleIntervalMs: 10 } });
  const pending = Promise.all(Array.from({ length: 20 }, () => call(list.path)));
  block(800);
  expect(new Set((await pending).map(({ status }) => status))).toEqual(new Set([200]));
});

async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  closers.push(() => socket.destroy());
  return socket;
}

/** Reads until the service closes the connection. */
async function received(socket: Socket): Promise<string> {
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk) => {
    text += chunk;
  });
  if (!socket.closed) await once(socket, 'close');
  return text;
}

test.each([
  ['incomplete headers', `GET ${list.path} HTTP/1.1\r\nHost: x\r\n`],
  ['an incomplete body', 'POST /health/live HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n{'],
  ['a silent connection', ''],
])('%s: the connection is closed after the timeout', async (_name, bytes) => {
  const connections = { headersTimeout: 300, requestTimeout: 300, connectionsCheckingInterval: 50 };
  const { service } = await serve({ connections });
  const socket = await open(service.port);
  socket.write(bytes);
  await received(socket);
});

test('an idle keep-alive connection is closed after the timeout', async () => {
  const { service } = await serve({ connections: { keepAliveTimeout: 200 } });
  const socket = await open(service.port);
  socket.write(get('/health/live'));
  expect(await received(socket)).toMatch(/^HTTP\/1\.1 200 [\s\S]*keep-alive/);
});

test('connections beyond the maximum are closed immediately, and existing ones keep working', async () => {
  const { service } = await serve({ connections: { maxConnections: 2 } });
  const first = await open(service.port);
  await open(service.port);
  expect(await received(await open(service.port))).toBe('');
  first.write(get('/health/live'));
  expect(String(await once(first, 'data'))).toMatch(/^HTTP\/1\.1 200 /);
});

const CHUNK = 'x'.repeat(4_000_000);
/** Responds with four megabytes. */
const chunks: Resource = {
  name: 'chunks',
  description: 'Much to read',
  createStore: () => ({}),
  procedures: {
    getChunk: createProcedure()
      .meta({
        openapi: { method: 'GET', path: '/chunk', summary: 'Get a chunk' },
        stability: 'stable',
        scope: 'any',
      })
      .output(z.object({ chunk: z.string() }).meta({ id: 'Chunk', examples: [{ chunk: 'x' }] }))
      .query(async () => ({ chunk: CHUNK })),
  },
};

/** Asks for more on a connection than the system buffers. Returns the least that all the responses have. */
function askForMuch({ key }: TestService, socket: Socket): number {
  // One more would close the connection.
  const count = 16;
  socket.write(get('/v1/chunk', `Authorization: Bearer ${key}\r\n`).repeat(count));
  return count * CHUNK.length;
}

test('a connection is closed when nobody reads its responses', async () => {
  const { service } = await serve({ resources: [...resources, chunks], connections: { timeout: 500 } });
  const socket = (await open(service.port)).pause();
  const length = askForMuch(service, socket);
  await expect.poll(() => readConnections(service), { timeout: 20_000 }).toBe(1);
  expect((await received(socket.resume())).length).toBeLessThan(length);
});

test('a connection is not closed while its responses are read slowly', async () => {
  const { service } = await serve({ resources: [...resources, chunks], connections: { timeout: 2_000 } });
  const socket = await open(service.port);
  let count = 0;
  socket.on('data', (chunk) => {
    count += chunk.length;
    socket.pause();
    setTimeout(() => socket.resume(), 5);
  });
  const length = askForMuch(service, socket);
  await expect.poll(() => count, { timeout: 100_000 }).toBeGreaterThan(length);
  expect(socket.closed).toBe(false);
});

/** How many connections are open, that of the scrape included. */
async function readConnections({ url }: TestService): Promise<number> {
  const response = await fetch(`${url}/metrics`, { headers: { connection: 'close' } });
  return Number(metric('http_connections (\\d+)').exec(await response.text())?.[1]);
}
