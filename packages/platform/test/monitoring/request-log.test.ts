import { once } from 'node:events';
import { connect } from 'node:net';
import {
  type Caller,
  createCaller,
  message,
  oldToolCall,
  post,
  rpcPath,
  toolCall,
} from '@animal-store/platform/testing';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { create, list, read, TABLE } from '#operations-under-test';
import { generateKey, livePrefix, testPrefix } from '../../src/keys/format.js';
import { describeError } from '../../src/process/logger.js';
import { BEGIN_FOR_LONG } from '../support/begin-for-long.js';
import { breakTable } from '../support/broken-table.js';
import { startService, type TestService, type TestServiceOptions } from '../support/test-service.js';

interface Line {
  readonly level: number;
  readonly [name: string]: unknown;
}

const INFO = 30;
const WARN = 40;

/** That of most tests */
let shared: TestService;
let service: TestService;
let call: Caller;
let written: string;

function write(line: string): void {
  written += line;
}

beforeAll(async () => {
  shared = await startService({ log: pino({ level: 'info' }, { write }) });
});
afterAll(() => shared.close());
beforeEach(() => {
  written = '';
  service = shared;
  call = createCaller(service);
});

/** Lets a test have a service of its own, which may go on writing until it is closed, or has other options. */
async function useOwnService(options: TestServiceOptions = {}): Promise<void> {
  const { databaseUrl } = shared;
  const own = await startService({ databaseUrl, log: pino({ level: 'info' }, { write }), ...options });
  onTestFinished(() => own.close());
  service = own;
  call = createCaller(own);
}

async function loseTable(): Promise<void> {
  onTestFinished(await breakTable(service.database.pool, TABLE));
}

/** The lines about requests; on a busy machine there may be one about a query that was too slow. */
const lines = (): Line[] =>
  written
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
    .filter(({ reqId }) => reqId !== undefined);

/** Waits for the first line, and briefly for any others. */
async function onlyLine(): Promise<Line | undefined> {
  await expect.poll(lines).not.toEqual([]);
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect(lines()).toHaveLength(1);
  return lines()[0];
}

const malformed = post('{"name": "Secret Name", ');

test.each<readonly [string, string, RequestInit, Record<string, unknown>]>([
  ['a success over REST', list.path, {}, { protocol: 'rest', operation: list.name, status: 200 }],
  ['a success over tRPC', list.trpc, {}, { protocol: 'trpc', operation: list.name, status: 200 }],
  [
    'a batch',
    `${list.trpc},${read.name},x?batch=1`,
    {},
    { protocol: 'trpc', operation: `${list.name},${read.name}` },
  ],
  [
    'an invalid input over REST',
    `${list.path}?limit=0`,
    {},
    { protocol: 'rest', status: 400, code: 'invalid_request' },
  ],
  [
    'an invalid input over tRPC',
    rpcPath(list.name, { limit: 0 }),
    {},
    { protocol: 'trpc', code: 'invalid_request' },
  ],
  [
    'a malformed body over REST',
    list.path,
    malformed,
    { operation: create.name, status: 400, code: 'invalid_request' },
  ],
  ['a malformed body over tRPC', create.trpc, malformed, { operation: create.name, code: 'invalid_request' }],
  ['a tool', '/mcp', toolCall(list.name), { protocol: 'mcp', operation: list.name, status: 200 }],
  ['a tool, for an older client', '/mcp', oldToolCall(list.name), { protocol: 'mcp', operation: list.name }],
  [
    'an error of a tool',
    '/mcp',
    toolCall(list.name, { limit: 0, status: 'secret' }),
    { protocol: 'mcp', operation: list.name, status: 400, code: 'invalid_request' },
  ],
  ['an unknown tool', '/mcp', toolCall('secret'), { protocol: 'mcp', status: 200, code: '-32602' }],
  ['an unknown method', '/mcp', message('secret'), { protocol: 'mcp', status: 404, code: '-32601' }],
  ['a malformed message', '/mcp', malformed, { protocol: 'mcp', status: 400, code: '-32700' }],
  ['an unknown route', '/v1/other-path', {}, { protocol: 'rest', status: 404, code: 'not_found' }],
  ['an unknown procedure', '/trpc/secret-path', {}, { protocol: 'trpc', status: 404, code: 'not_found' }],
  [
    'a path outside of the protocols',
    '/other-path',
    {},
    { protocol: 'other', status: 404, code: 'not_found' },
  ],
])(
  '%s is logged as one line that identifies it and contains nothing secret',
  async (_name, path, init, expected) => {
    await call(path, init);
    const line = await onlyLine();
    expect(line).toMatchObject({ level: INFO, msg: 'request', durationMs: expect.any(Number), ...expected });
    if (expected.protocol !== 'other') expect(line?.keyId).toMatch(/^[\w-]{36}$/);
    expect(written).not.toContain(service.key);
    expect(written).not.toMatch(/secret/i);
  },
);

test.each([
  [`${list.path}?limit=1&status=secret`, list.path],
  [read.pathOf(12345678), read.path],
  [`${list.trpc}?input={"limit":"secret"}`, '/trpc/{path}'],
  ['/trpc/secret,secret?batch=1', '/trpc/{path}'],
  ['/?secret', '/'],
])('%s is logged with its route, address and user agent, without values', async (path, route) => {
  const userAgent = `shop/1 ${'x'.repeat(500)}`;
  await fetch(service.url + path, { redirect: 'manual', headers: { 'user-agent': userAgent } });
  const line = await onlyLine();
  expect(line).toMatchObject({ route, address: '127.0.0.1', userAgent: userAgent.slice(0, 200) });
  expect(line).not.toHaveProperty('path');
  expect(written).not.toMatch(/secret|12345678/);
});

test.each([
  ['/v1/unknown?secret', '/v1/unknown'],
  ['/trpc/unknown/unknown', '/trpc/unknown/unknown'],
  ['/favicon.ico?secret=1', '/favicon.ico'],
  [`/${'x'.repeat(500)}`, `/${'x'.repeat(199)}`],
])('%s, which is no route, is logged with its path, shortened and without the query', async (url, path) => {
  await fetch(service.url + url);
  expect(await onlyLine()).toMatchObject({ route: 'unknown', path, status: 404 });
  expect(written).not.toMatch(/secret/);
});

test('a method that a path does not support is logged with the route of the path', async () => {
  await call(read.pathOf(1), { method: 'PROPFIND' });
  expect(await onlyLine()).toMatchObject({ route: read.path, method: 'PROPFIND', status: 405 });
});

test('the address is logged as it is counted', async () => {
  await useOwnService({ trustProxy: ['127.0.0.1'] });
  const addresses = {
    '203.0.113.7:4711': '203.0.113.7',
    '[2001:db8:1:2:3:4:5:6]:443': '2001:db8:1:2::/64',
    'fe80::1%br-abc': 'fe80:0:0:0::/64',
    secret: 'unknown',
  };
  for (const [forwarded, address] of Object.entries(addresses)) {
    written = '';
    await call(list.path, { key: null, headers: { 'x-forwarded-for': forwarded } });
    expect(await onlyLine()).toMatchObject({ address, status: 401 });
  }
});

test('a client that disconnects in the middle of its body is logged as one line, without an error', async () => {
  await useOwnService();
  const socket = connect(service.port, '127.0.0.1');
  await once(socket, 'connect');
  const head = `POST ${create.path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.key}\r\n`;
  socket.write(
    `${head}Content-Type: application/json\r\nContent-Length: 500\r\nExpect: 100-continue\r\n\r\n`,
  );
  // The service has read the head.
  await once(socket, 'data');
  socket.write('{"name":', () => socket.destroy());
  const expected = {
    level: INFO,
    protocol: 'rest',
    operation: create.name,
    route: list.path,
    address: '127.0.0.1',
    status: 499,
    code: 'client_left',
  };
  expect(await onlyLine()).toMatchObject(expected);
});

test('a client that resets its connection before its response is logged as one line, without an error', async () => {
  await useOwnService();
  const blocker = await service.database.pool.connect();
  await blocker.query(BEGIN_FOR_LONG);
  await blocker.query(`LOCK TABLE ${TABLE}`);
  const socket = connect(service.port, '127.0.0.1').on('error', () => {});
  socket.write(`GET ${list.path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.key}\r\n\r\n`);
  const isWaiting = async () => {
    const waiting =
      "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    return (await blocker.query(waiting)).rowCount;
  };
  await expect.poll(isWaiting).toBe(1);
  socket.resetAndDestroy();
  expect(await onlyLine()).toMatchObject({ level: INFO, status: 499, code: 'client_left' });
  await blocker.query('ROLLBACK');
  blocker.release();
});

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

function openMany(count: number) {
  const open = async () => {
    const socket = connect(service.port, '127.0.0.1').on('error', () => {});
    // The response to a probe, which is not logged, shows that the service has accepted the connection.
    socket.write(get('/health/live'));
    await once(socket, 'data');
    return socket;
  };
  return Promise.all(Array.from({ length: count }, open));
}

test('clients that leave while their requests are queued are logged with their addresses', async () => {
  await useOwnService();
  const sockets = await openMany(200);
  const firstResponse = Promise.race(sockets.map((socket) => once(socket, 'data')));
  for (const socket of sockets) socket.write(get(list.path));
  await firstResponse;
  for (const socket of sockets) socket.resetAndDestroy();
  await expect.poll(() => lines().length).toBe(sockets.length);
  expect(new Set(lines().map(({ address }) => address))).toEqual(new Set(['127.0.0.1']));
  expect(lines().some(({ status }) => status === 499)).toBe(true);
});

test('requests that wait behind others of a client that leaves are logged, and not counted', async () => {
  await useOwnService();
  const sockets = await openMany(32);
  const head = `GET ${list.path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.key}\r\n\r\n`;
  const readRemaining = async () => Number((await call(list.path)).headers.get('x-ratelimit-remaining'));
  const before = await readRemaining();
  for (const socket of sockets) socket.write(head.repeat(16));
  await Promise.race(sockets.map((socket) => once(socket, 'data')));
  for (const socket of sockets) socket.resetAndDestroy();
  const left = () => lines().filter(({ status }) => status === 499).length;
  await expect.poll(left).toBeGreaterThan(100);
  expect(before - (await readRemaining())).toBeLessThan(400);
});

test('the duration of a request that is queued includes the time that it waited', async () => {
  await useOwnService();
  const sockets = await openMany(8);
  for (const socket of sockets) socket.write(get(list.path).repeat(16));
  await expect.poll(() => lines().length).toBe(128);
  for (const socket of sockets) socket.destroy();
  // All of them arrived in one tick, so the last was received before the first was answered.
  const [first, last] = [lines().at(0), lines().at(-1)];
  const answeringMs = Number(last?.time) - Number(first?.time);
  expect(answeringMs).toBeGreaterThan(0);
  expect(last?.durationMs).toBeGreaterThanOrEqual(answeringMs - 1);
});

test('an internal error is logged once with its cause, and its request as a warning', async () => {
  await loseTable();
  for (const [path, protocol, route] of [
    [list.path, 'rest', list.path],
    [list.trpc, 'trpc', '/trpc/{path}'],
  ] as const) {
    written = '';
    await call(path);
    await expect.poll(lines).toHaveLength(2);
    const [cause, request] = lines();
    expect(cause).toMatchObject({ level: 50, reqId: request?.reqId, err: { message: expect.any(String) } });
    expect(request).toMatchObject({ level: WARN, protocol, status: 500, code: 'internal_error' });
    for (const line of [cause, request]) expect(line).toMatchObject({ route, address: '127.0.0.1' });
  }
});

test('a request that the database cannot serve is one line with the reason, and without a stack', async () => {
  await useOwnService();
  const holder = await service.database.pool.connect();
  await holder.query(`${BEGIN_FOR_LONG}; LOCK TABLE ${TABLE}`);
  for (const path of [list.path, list.trpc]) {
    written = '';
    expect((await call(path)).status).toBe(503);
    const line = await onlyLine();
    expect(line).toMatchObject({ level: WARN, status: 503, code: 'service_unavailable' });
    expect(line?.reason).toMatch(/lock timeout|statement timeout|No answer within/);
    expect(written).not.toContain('stack');
  }
  await holder.query('ROLLBACK');
  holder.release();
});

test('successful probes and scrapes are not logged', async () => {
  for (const path of ['/health/live', '/health/ready']) await call(path);
  await (await fetch(`${service.url}/metrics`)).text();
  await call(list.path);
  expect(await onlyLine()).toMatchObject({ operation: list.name });
});

test('malformed HTTP is logged at debug level only', async () => {
  const send = async ({ port }: TestService) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('garbage\r\n\r\n'));
    socket.resume();
    await once(socket, 'close');
  };
  await send(service);
  await call(list.path);
  expect(await onlyLine()).toMatchObject({ operation: list.name });
  await useOwnService({ log: pino({ level: 'debug' }, { write }) });
  written = '';
  await send(service);
  expect(await onlyLine()).toMatchObject({ level: 20, code: 'HPE_INVALID_METHOD', address: '127.0.0.1' });
});

test('a well-formed X-Request-Id is kept, otherwise one is generated, and every response has it', async () => {
  const sendId = async (id?: string) => {
    const { headers } = await call('/v1/nope', id === undefined ? {} : { headers: { 'x-request-id': id } });
    return headers.get('x-request-id');
  };
  expect(await sendId('abc-1')).toBe('abc-1');
  await expect.poll(() => written).toContain('"reqId":"abc-1"');
  for (const id of [undefined, 'two words', 'x'.repeat(129), '"quoted"', '<b>']) {
    expect(await sendId(id)).toMatch(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
  }
});

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN_ID = '00f067aa0ba902b7';

test.each([
  ['REST', list.path],
  ['tRPC', list.trpc],
  ['a tRPC batch', `${list.trpc},${read.name}?batch=1`],
  ['a path outside of both protocols', '/nope'],
])("the log line of %s has the trace id of the caller's traceparent", async (_name, path) => {
  await call(path, { headers: { traceparent: `00-${TRACE_ID}-${SPAN_ID}-01` } });
  expect(await onlyLine()).toMatchObject({ trace_id: TRACE_ID });
});

test('the log line of a tool has the trace id of the traceparent in its message, unless a header has one', async () => {
  const traceparent = `00-${TRACE_ID}-${SPAN_ID}-01`;
  await call('/mcp', message('tools/call', { name: list.name, _meta: { traceparent } }));
  expect(await onlyLine()).toMatchObject({ trace_id: TRACE_ID });
  written = '';
  const other = 'a'.repeat(32);
  const headers = { traceparent: `00-${other}-${SPAN_ID}-01` };
  await call('/mcp', message('tools/call', { name: list.name, _meta: { traceparent } }, headers));
  expect(await onlyLine()).toMatchObject({ trace_id: other });
  for (const invalid of [7, {}, 'x', `00-${'0'.repeat(32)}-${SPAN_ID}-01`]) {
    written = '';
    await call('/mcp', message('tools/call', { name: list.name, _meta: { traceparent: invalid } }));
    expect(await onlyLine()).not.toHaveProperty('trace_id');
  }
});

test('the line with the cause of an error has the trace id, too', async () => {
  await loseTable();
  const traceparent = `00-${TRACE_ID}-${SPAN_ID}-01`;
  for (const [path, init] of [
    [list.path, { headers: { traceparent } }],
    [list.trpc, { headers: { traceparent } }],
    ['/mcp', message('tools/call', { name: list.name, _meta: { traceparent } })],
  ] as const) {
    written = '';
    await call(path, init);
    await expect.poll(lines).toHaveLength(2);
    for (const line of lines()) expect(line).toMatchObject({ trace_id: TRACE_ID });
  }
});

test('a trace id that an instrumentation adds stays in the line of a request without a traceparent', async () => {
  // As OpenTelemetry's instrumentation of pino does.
  const log = pino({ level: 'info', mixin: () => ({ trace_id: TRACE_ID }) }, { write });
  await useOwnService({ log });
  for (const path of [list.path, '/v1/nope', list.trpc]) {
    written = '';
    await call(path);
    expect(await onlyLine()).toMatchObject({ trace_id: TRACE_ID });
  }
});

test.each([
  ['one that is not sampled', `00-${TRACE_ID}-${SPAN_ID}-00`],
  ['a later version', `01-${TRACE_ID}-${SPAN_ID}-01`],
  ['a later version with more parts', `cc-${TRACE_ID}-${SPAN_ID}-01-what-the-future-will-be-like`],
])('a traceparent is read: %s', async (_name, traceparent) => {
  expect((await call(list.path, { headers: { traceparent } })).status).toBe(200);
  expect(await onlyLine()).toMatchObject({ trace_id: TRACE_ID });
});

test.each([
  ['version ff', `ff-${TRACE_ID}-${SPAN_ID}-01`],
  ['a trace id of zeros', `00-${'0'.repeat(32)}-${SPAN_ID}-01`],
  ['a parent id of zeros', `00-${TRACE_ID}-${'0'.repeat(16)}-01`],
  ['version 00 with a fifth part', `00-${TRACE_ID}-${SPAN_ID}-01-more`],
  ['version 00 with a dash at its end', `00-${TRACE_ID}-${SPAN_ID}-01-`],
  ['flags of a later version that go on without a dash', `01-${TRACE_ID}-${SPAN_ID}-01x`],
  ['capital letters', `00-${TRACE_ID.toUpperCase()}-${SPAN_ID}-01`],
  ['a short trace id', `00-${TRACE_ID.slice(1)}-${SPAN_ID}-01`],
  ['no flags', `00-${TRACE_ID}-${SPAN_ID}`],
  ['two in one', `00-${TRACE_ID}-${SPAN_ID}-01, 00-${TRACE_ID}-${SPAN_ID}-01`],
  ['anything else', 'secret'],
  ['nothing', ''],
])('an invalid traceparent is ignored: %s', async (_name, traceparent) => {
  expect((await call(list.path, { headers: { traceparent } })).status).toBe(200);
  expect(await onlyLine()).not.toHaveProperty('trace_id');
  expect(written).not.toContain('secret');
});

test('an error of PostgreSQL is logged without the row that it quotes', () => {
  const log = pino({ serializers: { err: describeError } }, { write });
  const error = Object.assign(new Error('violates check constraint'), {
    code: '23514',
    detail: 'Failing row contains (1, Secret Name)',
  });
  log.error({ err: error }, 'failed');
  const line = JSON.parse(written.split('\n').at(-2) ?? '');
  expect(line).toMatchObject({ err: { message: 'violates check constraint', code: '23514' } });
  expect(written).not.toContain('Secret Name');
});

test('the line of a request has the name of its key', async () => {
  await call(list.path);
  expect(await onlyLine()).toMatchObject({ keyId: expect.any(String), keyName: 'test' });
});

test.each([livePrefix('by_'), testPrefix('by_')])(
  'a text that looks like a key (%s…) is in no line of a request, wherever the client puts it',
  async (prefix) => {
    const key = generateKey(prefix);
    const requests: readonly (readonly [path: string, headers?: Record<string, string>])[] = [
      [`/v1/${key}`],
      [`/${key}${list.path}?key=${key}`],
      [`/v1/%${key.charCodeAt(0).toString(16)}${key.slice(1).replaceAll('_', '%5f')}`],
      [`/trpc/${key}`],
      [`${list.trpc},${key}?batch=1`],
      [read.pathOf(key)],
      [list.path, { 'user-agent': `shop/1 (${key})` }],
      [list.path, { 'x-request-id': key }],
      [list.path, { traceparent: key, 'x-forwarded-for': key, 'idempotency-key': key }],
      // Most of it would be left where the log cuts the text off.
      [`/${'x'.repeat(160)}${key}`],
      [list.path, { 'user-agent': `${'x'.repeat(160)}${key}` }],
    ];
    for (const [path, headers = {}] of requests) {
      written = '';
      const response = await call(path, { headers });
      await onlyLine();
      expect(written).not.toContain(key.slice(0, 20));
      expect(response.headers.get('x-request-id')).not.toContain(key.slice(0, 20));
    }
    written = '';
    await call(`/v1/${key}%2F%5F`);
    expect(await onlyLine()).toMatchObject({ path: `/v1/${key.slice(0, 12)}…%2F_` });
  },
);

test('what only begins like a key stays in the log: it has no checksum', async () => {
  const text = `${testPrefix('by_')}${'x'.repeat(36)}`;
  await call(`/v1/${text}`);
  expect(await onlyLine()).toMatchObject({ path: `/v1/${text}` });
});
