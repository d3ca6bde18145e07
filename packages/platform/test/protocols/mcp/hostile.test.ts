import {
  type Caller,
  createCaller,
  message,
  oldToolCall,
  post,
  REVISION,
  toolCall,
} from '@animal-store/platform/testing';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { create, list, newItem, newItemSchema, TABLE, TEXT } from '#operations-under-test';
import { errorOf } from '../../support/error-table.js';
import { expectErrorBody } from '../../support/expect-error-body.js';
import { startService, type TestService } from '../../support/test-service.js';

const SHOP = 'https://shop.example';
/** JSON-RPC's errors, and those of the specification. */
const PARSE = -32_700;
const INVALID = -32_600;
const NO_METHOD = -32_601;
const PARAMS = -32_602;
const MISMATCH = -32_020;
const UNKNOWN_REVISION = -32_022;

let service: TestService;
let call: Caller;
const errors: unknown[] = [];

beforeAll(async () => {
  const log = pino({ level: 'error' }, { write: (line: string) => errors.push(line) });
  service = await startService({ corsOrigins: [SHOP], log });
  call = createCaller(service);
});
afterAll(() => service.close());

/** Whatever was sent, the service still answers clients of both kinds, and nothing has failed inside. */
afterEach(async () => {
  expect((await call('/mcp', toolCall(list.name))).body.result.structuredContent.items).toBeInstanceOf(Array);
  expect((await call('/mcp', oldToolCall(list.name))).status).toBe(200);
  expect(errors).toEqual([]);
});

const old = (body: unknown, headers = {}) => post(body, headers);
const request = (more: object) => ({ jsonrpc: '2.0', id: 1, method: 'tools/list', ...more });
const revision = (named: string, claimed = named): RequestInit =>
  message(
    'tools/list',
    { _meta: { 'io.modelcontextprotocol/protocolVersion': claimed } },
    { 'mcp-protocol-version': named },
  );
const envelope = (_meta: unknown): RequestInit =>
  post(request({ params: { _meta } }), { 'mcp-protocol-version': REVISION, 'mcp-method': 'tools/list' });

test.each<readonly [string, RequestInit, status: number, code: number]>([
  ['an empty body', old(''), 400, PARSE],
  ['a body that is not JSON', old('{'), 400, PARSE],
  [
    'a body that is not JSON, with the headers of a call',
    { ...toolCall(list.name), body: 'not json' },
    400,
    PARSE,
  ],
  ['a body that is not UTF-8', { ...old(''), body: new Uint8Array([0x22, 0xff, 0xfe, 0x22]) }, 400, PARSE],
  ['a body of NULs', { ...old(''), body: new Uint8Array(100) }, 400, PARSE],
  ['deep nesting', old('['.repeat(60_000)), 400, PARSE],
  ['deep and closed nesting', old(`${'['.repeat(30_000)}${']'.repeat(30_000)}`), 400, PARSE],
  [
    'deeply nested params',
    old(
      `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":${'{"a":'.repeat(9_000)}1${'}'.repeat(9_000)}}`,
    ),
    400,
    PARSE,
  ],
  ['null', old('null'), 400, INVALID],
  ['a number', old('3'), 400, INVALID],
  ['a text', old('"tools/list"'), 400, INVALID],
  ['an empty object', old('{}'), 400, INVALID],
  ['an empty batch', old('[]'), 400, INVALID],
  ['a batch of one', old([request({})]), 400, INVALID],
  ['a batch', old([request({}), request({ id: 2 })]), 400, INVALID],
  [
    'a batch of calls',
    {
      ...toolCall(create.name),
      body: JSON.stringify(Array(50).fill(JSON.parse(String(oldToolCall(create.name, create.body).body)))),
    },
    400,
    INVALID,
  ],
  ['no jsonrpc', old({ id: 1, method: 'tools/list' }), 400, INVALID],
  ['JSON-RPC 1.0', old(request({ jsonrpc: '1.0' })), 400, INVALID],
  ['an id that is null', old(request({ id: null })), 400, INVALID],
  ['an id that is a fraction', old(request({ id: 1.5 })), 400, INVALID],
  ['an id that is an object', old(request({ id: {} })), 400, INVALID],
  ['an id that is true', old(request({ id: true })), 400, INVALID],
  ['a method that is a number', old(request({ method: 1 })), 400, INVALID],
  ['params that are a list', old(request({ params: [] })), 400, INVALID],
  ['an unknown method', message('nope'), 404, NO_METHOD],
  ['a method of Object', message('constructor'), 404, NO_METHOD],
  ['a method that was removed', message('initialize'), 404, NO_METHOD],
  ['prompts', message('prompts/list'), 404, NO_METHOD],
  [
    'resources',
    message('resources/read', { uri: 'file:///etc/passwd' }, { 'mcp-name': 'file:///etc/passwd' }),
    404,
    NO_METHOD,
  ],
  [
    'a subscription',
    message('subscriptions/listen', { notifications: { toolsListChanged: true } }),
    404,
    NO_METHOD,
  ],
  ['an unknown method of an older client', old(request({ method: 'nope' })), 200, NO_METHOD],
  ['no _meta', envelope(undefined), 400, PARAMS],
  ['an empty _meta', envelope({}), 400, PARAMS],
  ['a _meta that is a list', envelope([]), 400, INVALID],
  [
    'capabilities that are none',
    envelope({
      'io.modelcontextprotocol/protocolVersion': REVISION,
      'io.modelcontextprotocol/clientCapabilities': 1,
    }),
    400,
    PARAMS,
  ],
  ['an unknown revision', revision('2099-01-01'), 400, UNKNOWN_REVISION],
  [
    'an unknown revision in the header alone',
    old(request({}), { 'mcp-protocol-version': '1999-01-01' }),
    400,
    UNKNOWN_REVISION,
  ],
  ['a revision that is none', revision('__proto__'), 400, UNKNOWN_REVISION],
  ['an older revision with the _meta of the new one', revision('2025-06-18'), 400, UNKNOWN_REVISION],
  ['two revisions', revision('2025-11-25', REVISION), 400, MISMATCH],
  [
    'no header of the revision',
    post(JSON.parse(String(message('tools/list').body)), { 'mcp-method': 'tools/list' }),
    400,
    MISMATCH,
  ],
  [
    'no header of the method',
    post(JSON.parse(String(message('tools/list').body)), { 'mcp-protocol-version': REVISION }),
    400,
    MISMATCH,
  ],
  ['another method in the header', message('tools/list', {}, { 'mcp-method': 'tools/call' }), 400, MISMATCH],
  [
    'a method in capitals in the header',
    message('tools/list', {}, { 'mcp-method': 'TOOLS/LIST' }),
    400,
    MISMATCH,
  ],
  [
    'no header of the name',
    post(JSON.parse(String(toolCall(list.name).body)), {
      'mcp-protocol-version': REVISION,
      'mcp-method': 'tools/call',
    }),
    400,
    MISMATCH,
  ],
  [
    'another tool in the header',
    toolCall(create.name, create.body, { 'mcp-name': list.name }),
    400,
    MISMATCH,
  ],
  [
    'another tool in Base64',
    toolCall(create.name, create.body, { 'mcp-name': `=?base64?${btoa(list.name)}?=` }),
    400,
    MISMATCH,
  ],
  ['a name in Base64 that is none', toolCall(list.name, {}, { 'mcp-name': '=?base64?%%%?=' }), 400, MISMATCH],
  ['two names', toolCall(list.name, {}, { 'mcp-name': `${list.name}, ${list.name}` }), 400, MISMATCH],
  [
    'another tool in the header of an older client',
    oldToolCall(create.name, create.body, { 'mcp-method': 'tools/call', 'mcp-name': list.name }),
    400,
    MISMATCH,
  ],
  [
    'another method in the header of an older client',
    oldToolCall(create.name, create.body, { 'mcp-method': 'tools/list' }),
    400,
    MISMATCH,
  ],
  [
    'a notification with another method in the header',
    post({ jsonrpc: '2.0', method: 'notifications/x' }, { 'mcp-method': 'tools/list' }),
    400,
    MISMATCH,
  ],
  ['arguments that are a list', toolCall(create.name, []), 200, PARAMS],
  ['arguments that are a text', oldToolCall(create.name, 'x'), 200, PARAMS],
  [
    'a name that is a number',
    post({ ...request({ method: 'tools/call', params: { name: 1 } }) }),
    200,
    PARAMS,
  ],
  ['a call without params', old(request({ method: 'tools/call' })), 200, PARAMS],
  ['a cursor that is a number', message('tools/list', { cursor: 3 }), 200, PARAMS],
  ['a cursor that is a number, of an older client', old(request({ params: { cursor: 3 } })), 200, PARAMS],
  [
    'a handshake without capabilities',
    old(request({ method: 'initialize', params: { protocolVersion: 3 } })),
    200,
    PARAMS,
  ],
  ['an answer that nobody asked for', post({ jsonrpc: '2.0', id: 1, result: {} }), 202, 0],
  ['a notification', post({ jsonrpc: '2.0', method: 'notifications/initialized' }), 202, 0],
  ['an unknown notification', post({ jsonrpc: '2.0', method: 'nope' }), 202, 0],
  [
    'a call as a notification',
    post({ jsonrpc: '2.0', method: 'tools/call', params: { name: create.name, arguments: create.body } }),
    202,
    0,
  ],
])('%s gets the status that the specification names, and JSON-RPC', async (_name, init, status, code) => {
  const { rows } = await service.database.pool.query(`SELECT count(*) FROM ${TABLE}`);
  const response = await call('/mcp', init);
  expect([response.status, response.body?.error?.code ?? 0]).toEqual([status, code]);
  if (response.body !== undefined) {
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(response.body.jsonrpc).toBe('2.0');
  }
  expect(JSON.stringify(response.body) ?? '').not.toMatch(
    /prisma|postgres|node_modules|\bat \w+ \(|SELECT|stack|invalid_type/i,
  );
  expect(response.headers.has('x-ratelimit-remaining')).toBe(true);
  expect((await service.database.pool.query(`SELECT count(*) FROM ${TABLE}`)).rows).toEqual(rows);
});

test.each(['x', '', 'ü'.repeat(1_000), 0, -1, Number.MAX_SAFE_INTEGER])(
  'the id %j comes back',
  async (id) => {
    for (const init of [
      message('tools/list'),
      oldToolCall(list.name),
      message('nope'),
      message('subscriptions/listen'),
    ]) {
      const body = { ...JSON.parse(String(init.body)), id };
      expect((await call('/mcp', { ...init, body: JSON.stringify(body) })).body.id).toBe(id);
    }
  },
);

test.each<readonly [string, RequestInit, string]>([
  ['text/plain', post('{}', { 'content-type': 'text/plain' }), 'unsupported_media_type'],
  ['gzip', post('{}', { 'content-encoding': 'gzip' }), 'unsupported_media_type'],
  ['neither body nor media type', { method: 'POST' }, 'unsupported_media_type'],
  [
    'a body over 64 KiB',
    toolCall(create.name, { ...create.body, name: 'x'.repeat(66_000) }),
    'payload_too_large',
  ],
  ['GET', { method: 'GET', headers: { accept: 'text/event-stream' } }, 'method_not_allowed'],
  ['DELETE', { method: 'DELETE', headers: { 'mcp-session-id': 'x' } }, 'method_not_allowed'],
  ['PUT', { ...toolCall(list.name), method: 'PUT' }, 'method_not_allowed'],
  ['OPTIONS', { method: 'OPTIONS' }, 'method_not_allowed'],
  ['PROPFIND', { method: 'PROPFIND' }, 'method_not_allowed'],
  ['no key', toolCall(list.name, {}, { authorization: '' }), 'missing_api_key'],
  ['an unknown key', toolCall(list.name, {}, { authorization: 'Bearer nonsense' }), 'invalid_api_key'],
  ['an unknown key and a bad body', post('{', { authorization: 'Bearer nonsense' }), 'invalid_api_key'],
])('%s is refused by admission, with its status and the body of every error', async (_name, init, code) => {
  const { status, body, headers } = await call('/mcp', init);
  expect(status).toBe(errorOf(code).status);
  expectErrorBody(body, code);
  expect(headers.get('allow')).toBe(code === 'method_not_allowed' ? 'POST' : null);
  if (status === 401) expect(headers.get('www-authenticate')).toBe('Bearer');
  expect(headers.has('x-ratelimit-remaining')).toBe(true);
});

test.each(['/mcp/', '/mcp/x', '//mcp', '/MCP', '/mcp%2F'])('%s is nothing', async (path) => {
  const { status, body } = await call(path, toolCall(list.name));
  expect([status, body.code]).toEqual([404, 'not_found']);
});

test('an Origin that CORS does not allow is refused, whoever asks; none and a configured one are not', async () => {
  for (const origin of ['https://evil.example', 'http://shop.example', 'null', `${SHOP}.evil.example`]) {
    for (const key of [service.key, null]) {
      for (const toCall of [toolCall, oldToolCall]) {
        const { status, body, headers } = await call('/mcp', { ...toCall(list.name, {}, { origin }), key });
        expect([origin, status]).toEqual([origin, 403]);
        expectErrorBody(body, 'origin_not_allowed');
        expect(headers.get('access-control-allow-origin')).toBeNull();
      }
    }
  }
  const { status, headers } = await call('/mcp', toolCall(list.name, {}, { origin: SHOP }));
  expect([status, headers.get('access-control-allow-origin')]).toEqual([200, SHOP]);
  expect((await call(list.path, { headers: { origin: 'https://evil.example' } })).status).toBe(200);
  const preflight = {
    origin: SHOP,
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'authorization,mcp-method,mcp-name,mcp-protocol-version',
  };
  const allowed = await call('/mcp', { method: 'OPTIONS', key: null, headers: preflight });
  expect([allowed.status, allowed.headers.get('access-control-allow-methods')]).toEqual([204, 'POST']);
});

test('without configured origins, every Origin is refused', async () => {
  const closed = await startService();
  const { status, body } = await createCaller(closed)('/mcp', toolCall(list.name, {}, { origin: SHOP }));
  expect([status, body.code]).toEqual([403, 'origin_not_allowed']);
  await closed.close();
});

test('a body of exactly 64 KiB is read', async () => {
  const init = toolCall(create.name, create.body);
  const padded = String(init.body).padEnd(64 * 1024, ' ');
  const { status, body } = await call('/mcp', { ...init, body: padded });
  expect([status, body.result.structuredContent[TEXT]]).toEqual([200, create.body[TEXT]]);
  expect((await call('/mcp', { ...init, body: `${padded} ` })).status).toBe(413);
});

test('arguments named like those of every object are unknown ones like any others, and such texts are data', async () => {
  for (const toCall of [toolCall, oldToolCall]) {
    const init = toCall(create.name, newItem('TEXT'));
    for (const name of ['__proto__', 'constructor', 'toString']) {
      const send = async (text: string) => {
        const body = String(init.body).replace('"TEXT"', text);
        return (await call('/mcp', { ...init, body })).body.result.structuredContent;
      };
      expect(await send(`"${name}"`)).toMatchObject(newItemSchema.parse(newItem(name)));
      // The SDK leaves this one out of arguments.
      if (name === '__proto__') continue;
      const { code, message } = await send(`"${name}","${name}":${JSON.stringify(list.filter)}`);
      expect([code, message]).toEqual([
        'invalid_request',
        expect.stringContaining(`This tool has no argument ${name}. It takes `),
      ]);
    }
  }
});
