import { connect } from 'node:net';
import { post, rpcPath } from '@animal-store/platform/testing';
import { afterEach, expect, test } from 'vitest';
import { create, list, NUMBER, newItem, otherList, read, resources, TEXT } from '#operations-under-test';
import { errorOf } from '../support/error-table.js';
import { expectErrorBody } from '../support/expect-error-body.js';
import { createChecker } from '../support/openapi-checker.js';
import { exchange } from '../support/raw-http.js';
import { useService } from '../support/test-service.js';

const { document } = createChecker(resources);

const { call, service } = useService();

/** Whatever was sent, the service still responds over both protocols. */
afterEach(async () => {
  expect((await call(list.path)).status).toBe(200);
  expect((await call(list.trpc)).status).toBe(200);
});

const invalid = 'invalid_request';
const tooLarge = 'payload_too_large';
const wrongType = 'unsupported_media_type';
const notFound = 'not_found';
const notAllowed = 'method_not_allowed';

/** Adding an item over either protocol. */
const createPaths = [create.path, create.trpc] as const;

async function expectError(path: string, init: RequestInit, expected: string): Promise<Headers> {
  const { status, headers, body } = await call(path, init);
  const error = path.startsWith('/trpc') ? body.error.data.error : body;
  expect(headers.get('content-type')).toBe('application/json');
  expectErrorBody(error, expected);
  expect(error.status).toBe(status);
  expect(JSON.stringify(body)).not.toMatch(
    /prisma|postgres|zod|fastify|node_modules|\bat \w+ \(|SELECT|stack/i,
  );
  return headers;
}

const good = JSON.stringify(create.body);
/** The same with other JSON for one of its members. */
const withMember = (member: string, json: string) =>
  JSON.stringify({ ...create.body, [member]: 'MEMBER' }).replace('"MEMBER"', () => json);

test.each<readonly [string, RequestInit, string]>([
  ['an empty body', post(''), invalid],
  ['a body that is not JSON', post('{'), invalid],
  ['a body that is not UTF-8', { ...post(''), body: new Uint8Array([0x22, 0xff, 0xfe, 0x22]) }, invalid],
  ['a body in UTF-16', { ...post(''), body: Buffer.from(good, 'utf16le') }, invalid],
  ['a body of NULs', { ...post(''), body: new Uint8Array(100) }, invalid],
  ['deep nesting', post('['.repeat(60_000)), invalid],
  ['deep and closed nesting', post(`${'['.repeat(30_000)}${']'.repeat(30_000)}`), invalid],
  ['a prototype for a name', post(withMember(TEXT, '{"__proto__":1}')), invalid],
  ['a body of prototype names', post(`{"__proto__":${good}}`), invalid],
  ['an enormous exponent', post(withMember(NUMBER, '1e99999999999')), invalid],
  ['a number of 60,000 digits', post(withMember(NUMBER, '9'.repeat(60_000))), invalid],
  ['a body over 64 KiB', post(JSON.stringify(newItem('x'.repeat(66_000)))), tooLarge],
  ['no media type', { method: 'POST', body: new Uint8Array([123, 125]) }, wrongType],
  ['neither body nor media type', { method: 'POST' }, wrongType],
  ['text/plain', post(good, { 'content-type': 'text/plain' }), wrongType],
  ['a form', { method: 'POST', body: new URLSearchParams({ [TEXT]: 'x' }) }, wrongType],
  ['a multipart form', { method: 'POST', body: new FormData() }, wrongType],
  ['octets', post(good, { 'content-type': 'application/octet-stream' }), wrongType],
  ['a media type that only begins like JSON', post(good, { 'content-type': 'application/jsonx' }), wrongType],
  ['two media types', post(good, { 'content-type': 'application/json, text/plain' }), wrongType],
  ['gzip', post(good, { 'content-encoding': 'gzip' }), wrongType],
  ['an encoding that changes nothing', post(good, { 'content-encoding': 'identity' }), wrongType],
])('%s is rejected alike over both protocols', async (_name, init, expected) => {
  for (const path of createPaths) await expectError(path, init, expected);
});

/** The deepest that JSON may be nested */
const MAX_DEPTH = 64;
const nest = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);

test.each<readonly [string, around: number, toRequest: (value: string) => readonly [string, RequestInit]]>([
  ['a body over REST', 1, (value) => [create.path, post(withMember('unknown', value))]],
  ['a body over tRPC', 1, (value) => [create.trpc, post(withMember('unknown', value))]],
  [
    'a batch over tRPC',
    2,
    (value) => [`${create.trpc}?batch=1`, post(`{"0":${withMember('unknown', value)}}`)],
  ],
  [
    'a stream over tRPC',
    2,
    (value) => [
      `${create.trpc}?batch=1`,
      post(`{"0":${withMember('unknown', value)}}`, { 'trpc-accept': 'application/jsonl' }),
    ],
  ],
  ['an input over tRPC', 1, (value) => [rpcPath(list.name, `{"unknown":${value}}`), {}]],
  [
    'a message over MCP',
    3,
    (value) => [
      '/mcp',
      post(
        `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${list.name}","_meta":{"unknown":${value}}}}`,
      ),
    ],
  ],
])('%s may be nested 64 levels deep, and no deeper', async (_name, around, toRequest) => {
  const send = async (levels: number) => {
    const [path, init] = toRequest(nest(levels - around));
    const authorization = `Bearer ${service.key}`;
    const response = await fetch(service.url + path, {
      ...init,
      headers: { ...(init.headers as Record<string, string>), authorization },
    });
    return { status: response.status, text: await response.text() };
  };
  const accepted = await send(MAX_DEPTH);
  expect([200, 201]).toContain(accepted.status);
  for (const levels of [MAX_DEPTH + 1, 2_000]) {
    const refused = await send(levels);
    expect([levels, refused.status]).toEqual([levels, 400]);
    expect(refused.text).toContain('JSON must not be nested more than 64 levels deep.');
  }
});

test('a body of exactly 64 KiB is read', async () => {
  const padded = good.padEnd(64 * 1024, ' ');
  expect((await call(create.path, post(padded))).status).toBe(201);
  expect((await call(create.trpc, post(padded))).status).toBe(200);
  for (const path of createPaths) await expectError(path, post(`${padded} `), tooLarge);
});

test('the media type may have parameters and any case', async () => {
  for (const type of [
    'application/json; charset=utf-8',
    'Application/JSON',
    'application/json;',
    'application/json ;x="y;z"',
  ]) {
    expect((await call(create.path, post(good, { 'content-type': type }))).status).toBe(201);
    expect((await call(create.trpc, post(good, { 'content-type': type }))).status).toBe(200);
  }
});

test.each<readonly [string, string, string]>([
  ['GET', '/v1', notFound],
  ['GET', '/v1/', notFound],
  ['GET', `${list.path}/`, notFound],
  ['POST', `${list.path}/`, notFound],
  ['GET', list.path.replace('/v1', '/v1/'), notFound],
  ['GET', list.path.replace('/v1', '/V1'), notFound],
  ['GET', `/v1${list.documentPath.toUpperCase()}`, notFound],
  ['GET', `${list.path}/1/2`, notFound],
  ['GET', `${list.path}/1/`, notFound],
  ['GET', '/v1/../v1/nope', notFound],
  ['GET', '/v1/%zz', notFound],
  ['GET', `${list.path}%2F1`, notFound],
  ['GET', `${list.path};x=1`, notFound],
  ['GET', `${list.path}-${'9'.repeat(5)}`, notFound],
  ['OPTIONS', list.path, notAllowed],
  ['PROPFIND', list.path, notAllowed],
  ['PROPFIND', read.pathOf(1), notAllowed],
  ['REPORT', read.pathOf(1), notAllowed],
  ['GET', '/trpc', notFound],
  ['GET', '/trpc/', notFound],
  ['GET', '/trpc/nope', notFound],
  ['GET', '/trpc/constructor', notFound],
  ['GET', '/trpc/__proto__', notFound],
  ['GET', '/trpc/toString,valueOf?batch=1', notFound],
  ['GET', `${list.trpc}/x`, notFound],
  ['GET', '/trpc/%zz', notFound],
  ['GET', `${list.trpc}%252Cx`, notFound],
  ['POST', list.trpc, notAllowed],
  ['GET', create.trpc, notAllowed],
  ['DELETE', create.trpc, notAllowed],
])(
  '%s %s is rejected without a key too, and a 405 lists the allowed methods',
  async (method, path, expected) => {
    for (const authorization of [`Bearer ${service.key}`, 'Bearer nonsense']) {
      const headers = await expectError(path, { method, headers: { authorization } }, expected);
      expect(headers.has('allow')).toBe(expected === notAllowed);
    }
  },
);

test('the Allow of a path lists the methods of its operations', async () => {
  const allowOf = async (path: string) =>
    (await call(path, { method: 'PROPFIND' })).headers.get('allow')?.split(', ').sort();
  for (const path of [list, read, otherList].map(({ documentPath }) => documentPath)) {
    const methods = Object.keys(document.paths[path] ?? {}).map((method) => method.toUpperCase());
    expect(methods).toContain('GET');
    expect(await allowOf(`/v1${path.replace(/\{\w+\}/, '1')}`)).toEqual([...methods, 'HEAD'].sort());
  }
  expect(await allowOf(create.trpc)).toEqual(['POST']);
  expect(await allowOf(list.trpc)).toEqual(['GET', 'HEAD']);
});

test.each([
  `${list.path}?constructor=1&__proto__=1&toString=1&hasOwnProperty=1`,
  `${list.path}?limit[]=1&limit.x=2&%00=1&=&&&`,
  `${list.path}?x=%zz&y=%FF&z=%`,
  `${list.path}?%6Cimit=3`,
  `${list.path}?${'a=1&'.repeat(2_000)}`,
  `/v1/%${list.documentPath.charCodeAt(1).toString(16)}${list.documentPath.slice(2)}`,
])('%s is a list: unknown parameters are ignored', async (path) => {
  expect((await call(path)).status).toBe(200);
});

test.each([
  `${list.path}?limit=1&limit=1`,
  `${list.path}?cursor=1&%63ursor=1`,
  `${list.path}?cursor=%zz`,
  `${list.path}?limit=%00`,
])('%s is a 400', async (path) => {
  await expectError(path, {}, invalid);
});

test.each([
  `${list.trpc}?input=%zz`,
  `${list.trpc}?input={`,
  `${list.trpc}?input=%FF`,
  `${list.trpc}?input=[]x`,
  `${list.trpc}?connectionParams={`,
  `${list.trpc},${create.name}?batch=1`,
  `${read.trpc}?input=${JSON.stringify(read.inputOf('__proto__'))}`,
  `/trpc/${`${list.name},`.repeat(20)}${list.name}?batch=1`,
  `${list.trpc}?input=[[[[[[`,
])('%s is a 400', async (path) => {
  await expectError(path, {}, invalid);
});

test('a batch may contain 20 calls, each with its own result', async () => {
  const names = Array.from({ length: 20 }, (_, index) => (index === 7 ? 'constructor' : list.name)).join(',');
  const { status, body } = await call(
    `/trpc/${names}?batch=1&input=${encodeURIComponent('{"3":{"limit":0}}')}`,
  );
  expect(status).toBe(207);
  expect(body).toHaveLength(20);
  expect(body[3].error.data.error.code).toBe('invalid_request');
  expect(body[7].error.data.error.code).toBe('not_found');
  expect(body[0].result.data).toBeInstanceOf(Array);
});

test('a streamed batch (application/jsonl) has a result for each call', async () => {
  const response = await fetch(
    `${service.url}${list.trpc},${read.name}?batch=1&input=${JSON.stringify({ 1: read.inputOf('x') })}`,
    {
      headers: { authorization: `Bearer ${service.key}`, 'trpc-accept': 'application/jsonl' },
    },
  );
  expect(response.status).toBe(200);
  const text = await response.text();
  expect(text).toContain('invalid_request');
  expect(text).not.toContain('stack');
});

const send = (bytes: string) => exchange(service.port, bytes);

const lines = (...parts: string[]) => [...parts, 'Host: x', 'Connection: close', '', ''].join('\r\n');

test.each<readonly [string, string]>([
  ['OPTIONS *', notFound],
  ['GET *', notFound],
  ['GET http://[/', notFound],
  ['GET http://', notFound],
  [`GET https://user:pass@host:99999${list.path}`, notFound],
  ['GET x', invalid],
  ['GET ?limit=1', invalid],
  [`GET ${list.path}/%`, 'missing_api_key'],
  [`GET ${list.path}#fragment`, 'missing_api_key'],
  [`GET http://evil.example${list.path}`, 'missing_api_key'],
  [`GET HTTP://evil.example${list.path}?limit=1`, 'missing_api_key'],
  [`GET //evil.example${list.path}`, notFound],
  ['GET /\\evil.example', notFound],
  [`TRACE ${list.path}`, notAllowed],
  [`QUERY ${list.path}`, notAllowed],
])('the request target of "%s" gets a response in JSON', async (requestLine, code) => {
  const received = await send(lines(`${requestLine} HTTP/1.1`));
  expect(received).toMatch(new RegExp(`^HTTP/1.1 ${errorOf(code).status} `));
  expect(received.toLowerCase()).toContain('content-type: application/json');
  expectErrorBody(JSON.parse(received.slice(received.indexOf('\r\n\r\n') + 4)), code);
});

test.each([
  ['garbage', 'garbage\r\n\r\n'],
  ['a version that does not exist', lines(`GET ${list.path} HTTP/9.9`)],
  ['a header without a name', lines(`GET ${list.path} HTTP/1.1`, ': x')],
  ['a NUL in a header', lines(`GET ${list.path} HTTP/1.1`, 'x: \0')],
  ['headers over 16 KiB', lines(`GET ${list.path} HTTP/1.1`, `x: ${'y'.repeat(20_000)}`)],
  ['two lengths', lines(`POST ${create.path} HTTP/1.1`, 'Content-Length: 1', 'Content-Length: 2')],
  [
    'a length and chunks',
    lines(`POST ${create.path} HTTP/1.1`, 'Content-Length: 1', 'Transfer-Encoding: chunked'),
  ],
  ['a negative length', lines(`POST ${create.path} HTTP/1.1`, 'Content-Length: -1')],
  ['a TLS hello', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
  ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
])('a request that the HTTP parser rejects gets the same error body: %s', async (_name, bytes) => {
  const received = await send(bytes);
  expect(received).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
  expect(received).toContain('Content-Type: application/json\r\n');
  expectErrorBody(JSON.parse(received.slice(received.indexOf('\r\n\r\n') + 4)), invalid);
});

test('HTTP/1.1 without a Host is a 400 in JSON, with the limit headers', async () => {
  const head = `GET ${list.path} HTTP/1.1\r\nAuthorization: Bearer ${service.key}\r\nConnection: close\r\n\r\n`;
  const received = await send(head);
  expect(received).toMatch(/^HTTP\/1\.1 400 /);
  expect(received).toContain('x-ratelimit-remaining: ');
  expect(received).toContain('{"code":"invalid_request"');
});

test('two Hosts are a 400', async () => {
  const received = await send(
    lines(`GET ${list.path} HTTP/1.1`, 'Host: y', `Authorization: Bearer ${service.key}`),
  );
  expect(received).toMatch(/^HTTP\/1\.1 400 [\s\S]*one Host header/);
});

test('CONNECT is a 400 in JSON', async () => {
  const received = await send(lines('CONNECT example.org:443 HTTP/1.1'));
  expect(received).toMatch(/^HTTP\/1\.1 400 [\s\S]*\{"code":"invalid_request"/);
});

test('outside the two protocols a route is unknown whatever the body', async () => {
  for (const body of ['{', 'x'.repeat(70_000)]) {
    const { status, body: error } = await call('/nope', post(body));
    expect([status, error.code]).toEqual([404, 'not_found']);
  }
});

test('an unknown Expect is ignored', async () => {
  const received = await send(
    lines(`GET ${list.path} HTTP/1.1`, 'Expect: miracles', `Authorization: Bearer ${service.key}`),
  );
  expect(received).toMatch(/^HTTP\/1\.1 200 /);
});

test('a client that disconnects in the middle of its body does no harm', async () => {
  await new Promise<void>((resolve) => {
    const socket = connect(service.port, '127.0.0.1', () => {
      const head = `POST ${create.path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.key}\r\n`;
      socket.write(`${head}Content-Type: application/json\r\nContent-Length: 500\r\n\r\n{"name":`, () => {
        socket.destroy();
        resolve();
      });
    });
  });
});
