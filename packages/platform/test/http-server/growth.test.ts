import { connect } from 'node:net';
import { oldToolCall } from '@animal-store/platform/testing';
import Fastify from 'fastify';
import { pino } from 'pino';
import { expect, test, vi } from 'vitest';
import { create, list } from '#operations-under-test';
import { createKeySearch } from '../../src/keys/format.js';
import { reportRequests } from '../../src/monitoring/request-log.js';
import { FILLERS, fill, findGrowth } from '../support/growth.js';
import { exchange } from '../support/raw-http.js';
import { useService } from '../support/test-service.js';

const { redactKeys } = createKeySearch('by_');

const { service } = useService({
  // What is logged is searched for keys.
  log: pino({ level: 'debug' }, { write: redactKeys }),
  corsOrigins: 'localhost',
  trustProxy: ['127.0.0.1', '::1'],
  // Within Node.js' 16 KiB, little growth would show.
  connections: { maxHeaderSize: 512 * 1024 } as object,
});

type Fields = Readonly<Record<string, string>>;

async function send(method: string, target: string, fields: Fields, body = ''): Promise<void> {
  const length = body === '' ? undefined : String(Buffer.byteLength(body));
  const all = {
    ...{ host: 'x', authorization: `Bearer ${service.key}`, connection: 'close' },
    ...(length && { 'content-type': 'application/json', 'content-length': length }),
    ...fields,
  };
  const head = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  const bytes = [`${method} ${target} HTTP/1.1`, ...head, '', body].join('\r\n');
  expect(await exchange(service.port, bytes)).toMatch(/^HTTP\/1\.1 [234]\d\d /);
}

/** How the work has grown with each kind of text, where it has grown too fast. */
async function findAll(work: (text: string) => unknown): Promise<object> {
  const found: Record<string, string> = {};
  for (const filler of FILLERS) {
    const growth = await findGrowth((size) => work(fill(filler, size)));
    if (growth !== undefined) found[JSON.stringify(filler)] = growth;
  }
  return found;
}

const preflight = { origin: 'http://localhost:1', 'access-control-request-method': 'GET' };
const toolCall = String(oldToolCall(list.name).body);
const item = JSON.stringify(create.body);

test.each<readonly [request: string, names: string, send: (fields: Fields) => Promise<void>]>([
  ['any request', 'authorization', (fields) => send('GET', '/v1/x', fields)],
  ['any request', 'host', (fields) => send('GET', '/docs', fields)],
  [
    'any request',
    'x-forwarded-for user-agent x-request-id traceparent',
    (fields) => send('GET', '/nope', fields),
  ],
  ['a call over REST', 'origin prefer', (fields) => send('GET', list.path, fields)],
  ['a call over tRPC', 'accept trpc-accept', (fields) => send('GET', list.trpc, fields)],
  ['a create', 'idempotency-key', (fields) => send('POST', create.path, fields, item)],
  ['a create', 'content-type', (fields) => send('POST', create.path, fields, item)],
  ['a tool call', 'origin', (fields) => send('POST', '/mcp', fields, toolCall)],
  [
    'a tool call',
    'mcp-method mcp-name mcp-protocol-version idempotency-key',
    (fields) => send('POST', '/mcp', fields, toolCall),
  ],
  ['a preflight', 'origin', (fields) => send('OPTIONS', list.path, { ...preflight, ...fields })],
  [
    'a preflight',
    'access-control-request-method access-control-request-headers',
    (fields) => send('OPTIONS', list.path, { ...preflight, ...fields }),
  ],
  ['a page', 'accept accept-encoding range if-range', (fields) => send('HEAD', '/docs', fields)],
  ['a file', 'if-match if-none-match cache-control', (fields) => send('HEAD', '/docs/page.css', fields)],
  [
    'the document',
    'accept-encoding if-none-match cache-control',
    (fields) => send('HEAD', '/openapi.json', fields),
  ],
])('the work of %s grows with the length of its headers and no faster: %s', async (_request, names, ask) => {
  const toFields = (text: string) => Object.fromEntries(names.split(' ').map((name) => [name, text]));
  expect(await findAll((text) => ask(toFields(text)))).toEqual({});
});

/** In a request target, where blanks would end it. */
const toTarget = (text: string) => text.replaceAll(/\s/g, '+');
/** Longer ones are refused. */
const asParameter = (text: string) => text.slice(0, text.length / 4 - 16);

test.each([
  ['a path', (text: string) => `/${text}`],
  ['the path of a file', (text: string) => `/docs/${text}`],
  ['a path parameter', (text: string) => `${list.path}/${asParameter(text)}`],
  ['a query', (text: string) => `${list.path}?${text}`],
  ['a query parameter', (text: string) => `${list.path}?cursor=${text}`],
  ['the names of a batch', (text: string) => `/trpc/${asParameter(text)}?batch=1`],
  ['an input', (text: string) => `${list.trpc}?input=${text}`],
  ['the parameters of a connection', (text: string) => `${list.trpc}?connectionParams=${text}`],
  ['the host of an absolute form', (text: string) => `http://${text}${list.path}`],
  ['the user of an absolute form', (text: string) => `http://${text}@x${list.path}`],
])('the work of a request grows with the length of %s and no faster', async (_part, toUrl) => {
  expect(await findAll((text) => send('GET', toUrl(toTarget(text)), {}))).toEqual({});
});

test('the work for the host of an absolute form grows with its length and no faster, whatever its characters', async () => {
  const host = (size: number) =>
    Array.from({ length: size / 9 }, (_, index) => encodeURIComponent(String.fromCodePoint(0x4e00 + index)));
  const work = (size: number) => send('GET', `http://${host(size).join('')}${list.path}`, {});
  expect(await findGrowth(work)).toBeUndefined();
});

test('the work to report a batch grows with the number of its names and no faster, known or not', async () => {
  let calls: string[] = [];
  const countRequest = vi.fn();
  const app = Fastify();
  reportRequests(app, [list.name], { countRequest, redactKeys }, () => calls);
  app.get('/', async () => '');
  const work = async (size: number) => {
    calls = [...Array(size / 2).fill(''), ...Array(size / 2).fill(list.name)];
    await app.inject('/');
  };
  expect(await findGrowth(work)).toBeUndefined();
  expect(countRequest).toHaveBeenCalledWith(expect.objectContaining({ operation: 'batch' }));
  await app.close();
});

const message = (method: string, params: object, id: unknown = 1) =>
  JSON.stringify({ jsonrpc: '2.0', id, method, params });

test.each<readonly [string, path: string, toBody: (text: string) => string]>([
  ['a body over REST', create.path, (text) => text],
  ['a body over tRPC', create.trpc, (text) => text],
  ['a body over MCP', '/mcp', (text) => text],
  ['a text', create.path, (text) => JSON.stringify({ ...create.body, name: text })],
  ['the name of a member', create.trpc, (text) => JSON.stringify({ [text]: 1 })],
  ['the method of a message', '/mcp', (text) => message(text, {}, text)],
  ['the name of a tool', '/mcp', (text) => message('tools/call', { name: text })],
  ['an argument', '/mcp', (text) => message('tools/call', { name: create.name, arguments: { name: text } })],
  ['a traceparent', '/mcp', (text) => message('tools/list', { _meta: { traceparent: text } })],
])('the work of a request grows with the length of %s and no faster', async (_part, path, toBody) => {
  const headers = { 'idempotency-key': 'x' };
  const post = (text: string) => send('POST', path, headers, toBody(text).slice(0, 65_536));
  expect(await findAll(post)).toEqual({});
});

test('the work for a body grows with the number of its members and no faster', async () => {
  const members = (size: number) =>
    Object.fromEntries(Array.from({ length: size / 16 }, (_, index) => [`member${index}`, index]));
  for (const [path, toBody] of [
    [create.path, members],
    [create.trpc, members],
    ['/mcp', (size: number) => ({ ...JSON.parse(toolCall), params: { _meta: members(size) } })],
    [
      '/mcp',
      (size: number) => ({
        ...JSON.parse(toolCall),
        params: { name: create.name, arguments: members(size) },
      }),
    ],
  ] as const) {
    const post = (size: number) =>
      send('POST', path, { 'idempotency-key': 'y' }, JSON.stringify(toBody(size)));
    expect([path, await findGrowth(post)]).toEqual([path, undefined]);
  }
});

test('the work for what the HTTP parser rejects grows with its length and no faster', async () => {
  for (const [before, after] of [
    ['', '\r\n\r\n'],
    ['GET ', ' HTTP/1.1\r\n\r\n'],
    ['X', ' x HTTP/1.2\r\n\r\n'],
    ['"', ' x HTTP/1.1\r\n\r\n'],
    ['GET / HTTP/1.1\r\n', '\r\n\r\n'],
    ['POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na', '\r\n\r\n'],
  ]) {
    const work = (text: string) => sendAndEnd(before + text + after);
    expect([before, await findAll(work)]).toEqual([before, {}]);
  }
});

/** Unlike a request, what is malformed may have no answer before its end. */
function sendAndEnd(bytes: string): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(service.port, '127.0.0.1');
    socket.on('error', () => {});
    socket.on('close', () => resolve());
    socket.resume();
    socket.end(bytes, 'latin1');
  });
}

test('the work to take keys out of the log grows with the length of a line and no faster', async () => {
  expect(await findAll(redactKeys)).toEqual({});
});
