import { connect } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { ErrorCode } from '../../../src/platform/errors/api-error.js';
import { errorTable } from '../../../src/platform/errors/error-table.js';
import { expectErrorBody } from '../../support/expect-error-body.js';
import { createChecker } from '../../support/openapi-checker.js';
import { resources } from '../../support/operations-under-test.js';
import { exchange } from '../../support/raw-http.js';
import {
  type Caller,
  createCaller,
  post,
  startService,
  type TestService,
} from '../../support/test-service.js';

const { document } = createChecker(resources);

let service: TestService;
let call: Caller;

beforeAll(async () => {
  service = await startService();
  call = createCaller(service);
});
afterAll(() => service.close());

/** Whatever was sent, the service still responds over both protocols. */
afterEach(async () => {
  expect((await call('/v1/pets')).status).toBe(200);
  expect((await call('/trpc/listPets')).status).toBe(200);
});

const invalid = 'invalid_request';
const tooLarge = 'payload_too_large';
const wrongType = 'unsupported_media_type';
const notFound = 'not_found';
const notAllowed = 'method_not_allowed';

/** Adding a pet over either protocol. */
const createPaths = ['/v1/pets', '/trpc/createPet'] as const;

async function expectError(path: string, init: RequestInit, expected: ErrorCode): Promise<Headers> {
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

const good = '{"name":"Rex","categoryId":1}';

test.each<readonly [string, RequestInit, ErrorCode]>([
  ['an empty body', post(''), invalid],
  ['a body that is not JSON', post('{'), invalid],
  ['a body that is not UTF-8', { ...post(''), body: new Uint8Array([0x22, 0xff, 0xfe, 0x22]) }, invalid],
  ['a body in UTF-16', { ...post(''), body: Buffer.from(good, 'utf16le') }, invalid],
  ['a body of NULs', { ...post(''), body: new Uint8Array(100) }, invalid],
  ['deep nesting', post('['.repeat(60_000)), invalid],
  ['deep and closed nesting', post(`${'['.repeat(30_000)}${']'.repeat(30_000)}`), invalid],
  ['a prototype for a name', post('{"name":{"__proto__":1},"categoryId":1}'), invalid],
  ['a body of prototype names', post('{"__proto__":{"name":"x","categoryId":1}}'), invalid],
  ['an enormous exponent', post('{"name":"x","categoryId":1e99999999999}'), invalid],
  ['a number of 60,000 digits', post(`{"name":"x","categoryId":${'9'.repeat(60_000)}}`), invalid],
  ['a body over 64 KiB', post(JSON.stringify({ name: 'x'.repeat(66_000), categoryId: 1 })), tooLarge],
  ['no media type', { method: 'POST', body: new Uint8Array([123, 125]) }, wrongType],
  ['neither body nor media type', { method: 'POST' }, wrongType],
  ['text/plain', post(good, { 'content-type': 'text/plain' }), wrongType],
  ['a form', { method: 'POST', body: new URLSearchParams({ name: 'Rex', categoryId: '1' }) }, wrongType],
  ['a multipart form', { method: 'POST', body: new FormData() }, wrongType],
  ['octets', post(good, { 'content-type': 'application/octet-stream' }), wrongType],
  ['a media type that only begins like JSON', post(good, { 'content-type': 'application/jsonx' }), wrongType],
  ['two media types', post(good, { 'content-type': 'application/json, text/plain' }), wrongType],
  ['gzip', post(good, { 'content-encoding': 'gzip' }), wrongType],
  ['an encoding that changes nothing', post(good, { 'content-encoding': 'identity' }), wrongType],
])('%s is rejected alike over both protocols', async (_name, init, expected) => {
  for (const path of createPaths) await expectError(path, init, expected);
});

test('a body of exactly 64 KiB is read', async () => {
  const padded = good.padEnd(64 * 1024, ' ');
  expect((await call('/v1/pets', post(padded))).status).toBe(201);
  expect((await call('/trpc/createPet', post(padded))).status).toBe(200);
  for (const path of createPaths) await expectError(path, post(`${padded} `), tooLarge);
});

test('the media type may have parameters and any case', async () => {
  for (const type of [
    'application/json; charset=utf-8',
    'Application/JSON',
    'application/json;',
    'application/json ;x="y;z"',
  ]) {
    expect((await call('/v1/pets', post(good, { 'content-type': type }))).status).toBe(201);
    expect((await call('/trpc/createPet', post(good, { 'content-type': type }))).status).toBe(200);
  }
});

test.each<readonly [string, string, ErrorCode]>([
  ['GET', '/v1', notFound],
  ['GET', '/v1/', notFound],
  ['GET', '/v1/pets/', notFound],
  ['POST', '/v1/pets/', notFound],
  ['GET', '/v1//pets', notFound],
  ['GET', '/V1/pets', notFound],
  ['GET', '/v1/Pets', notFound],
  ['GET', '/v1/pets/1/2', notFound],
  ['GET', '/v1/pets/1/', notFound],
  ['GET', '/v1/../v1/nope', notFound],
  ['GET', '/v1/%zz', notFound],
  ['GET', '/v1/pets%2F1', notFound],
  ['GET', '/v1/pets;x=1', notFound],
  ['GET', `/v1/pets-${'9'.repeat(5)}`, notFound],
  ['OPTIONS', '/v1/pets', notAllowed],
  ['PROPFIND', '/v1/pets', notAllowed],
  ['PROPFIND', '/v1/pets/1', notAllowed],
  ['REPORT', '/v1/pets/1', notAllowed],
  ['GET', '/trpc', notFound],
  ['GET', '/trpc/', notFound],
  ['GET', '/trpc/nope', notFound],
  ['GET', '/trpc/constructor', notFound],
  ['GET', '/trpc/__proto__', notFound],
  ['GET', '/trpc/toString,valueOf?batch=1', notFound],
  ['GET', '/trpc/listPets/x', notFound],
  ['GET', '/trpc/%zz', notFound],
  ['GET', '/trpc/listPets%252Cx', notFound],
  ['POST', '/trpc/listPets', notAllowed],
  ['GET', '/trpc/createPet', notAllowed],
  ['DELETE', '/trpc/createPet', notAllowed],
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
  for (const path of ['/pets', '/pets/{petId}', '/store/orders']) {
    const methods = Object.keys(document.paths[path] ?? {}).map((method) => method.toUpperCase());
    expect(methods).toContain('GET');
    expect(await allowOf(`/v1${path.replace('{petId}', '1')}`)).toEqual([...methods, 'HEAD'].sort());
  }
  expect(await allowOf('/trpc/createPet')).toEqual(['POST']);
  expect(await allowOf('/trpc/listPets')).toEqual(['GET', 'HEAD']);
});

test.each([
  '/v1/pets?constructor=1&__proto__=1&toString=1&hasOwnProperty=1',
  '/v1/pets?limit[]=1&limit.x=2&%00=1&=&&&',
  '/v1/pets?x=%zz&y=%FF&z=%',
  '/v1/pets?%6Cimit=3',
  `/v1/pets?${'a=1&'.repeat(2_000)}`,
  '/v1/%70ets',
])('%s lists pets: unknown parameters are ignored', async (path) => {
  expect((await call(path)).status).toBe(200);
});

test.each([
  '/v1/pets?limit=1&limit=1',
  '/v1/pets?status=sold&%73tatus=sold',
  '/v1/pets?cursor=%zz',
  '/v1/pets?limit=%00',
])('%s is a 400', async (path) => {
  await expectError(path, {}, invalid);
});

test.each([
  '/trpc/listPets?input=%zz',
  '/trpc/listPets?input={',
  '/trpc/listPets?input=%FF',
  '/trpc/listPets?input=[]x',
  '/trpc/listPets?connectionParams={',
  '/trpc/listPets,createPet?batch=1',
  '/trpc/getPet?input={"petId":"__proto__"}',
  `/trpc/${'listPets,'.repeat(20)}listPets?batch=1`,
  '/trpc/listPets?input=[[[[[[',
])('%s is a 400', async (path) => {
  await expectError(path, {}, invalid);
});

test('a batch may contain 20 calls, each with its own result', async () => {
  const names = Array.from({ length: 20 }, (_, index) => (index === 7 ? 'constructor' : 'listPets')).join(
    ',',
  );
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
  const response = await fetch(`${service.url}/trpc/listPets,getPet?batch=1&input={"1":{"petId":"x"}}`, {
    headers: { authorization: `Bearer ${service.key}`, 'trpc-accept': 'application/jsonl' },
  });
  expect(response.status).toBe(200);
  const text = await response.text();
  expect(text).toContain('invalid_request');
  expect(text).not.toContain('stack');
});

const send = (bytes: string) => exchange(service.port, bytes);

const lines = (...parts: string[]) => [...parts, 'Host: x', 'Connection: close', '', ''].join('\r\n');

test.each<readonly [string, ErrorCode]>([
  ['OPTIONS *', notFound],
  ['GET *', notFound],
  ['GET http://[/', notFound],
  ['GET http://', notFound],
  ['GET https://user:pass@host:99999/v1/pets', notFound],
  ['GET x', invalid],
  ['GET ?limit=1', invalid],
  ['GET /v1/pets/%', 'missing_api_key'],
  ['GET /v1/pets#fragment', 'missing_api_key'],
  ['GET http://evil.example/v1/pets', 'missing_api_key'],
  ['GET HTTP://evil.example/v1/pets?limit=1', 'missing_api_key'],
  ['GET //evil.example/v1/pets', notFound],
  ['GET /\\evil.example', notFound],
  ['TRACE /v1/pets', notAllowed],
  ['QUERY /v1/pets', notAllowed],
])('the request target of "%s" gets a response in JSON', async (requestLine, code) => {
  const received = await send(lines(`${requestLine} HTTP/1.1`));
  expect(received).toMatch(new RegExp(`^HTTP/1.1 ${errorTable[code].status} `));
  expect(received.toLowerCase()).toContain('content-type: application/json');
  expectErrorBody(JSON.parse(received.slice(received.indexOf('\r\n\r\n') + 4)), code);
});

test.each([
  ['garbage', 'garbage\r\n\r\n'],
  ['a version that does not exist', lines('GET /v1/pets HTTP/9.9')],
  ['a header without a name', lines('GET /v1/pets HTTP/1.1', ': x')],
  ['a NUL in a header', lines('GET /v1/pets HTTP/1.1', 'x: \0')],
  ['headers over 16 KiB', lines('GET /v1/pets HTTP/1.1', `x: ${'y'.repeat(20_000)}`)],
  ['two lengths', lines('POST /v1/pets HTTP/1.1', 'Content-Length: 1', 'Content-Length: 2')],
  ['a length and chunks', lines('POST /v1/pets HTTP/1.1', 'Content-Length: 1', 'Transfer-Encoding: chunked')],
  ['a negative length', lines('POST /v1/pets HTTP/1.1', 'Content-Length: -1')],
  ['a TLS hello', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
  ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
])('a request that the HTTP parser rejects gets the same error body: %s', async (_name, bytes) => {
  const received = await send(bytes);
  expect(received).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
  expect(received).toContain('Content-Type: application/json\r\n');
  expectErrorBody(JSON.parse(received.slice(received.indexOf('\r\n\r\n') + 4)), invalid);
});

test('HTTP/1.1 without a Host is a 400 in JSON, with the limit headers', async () => {
  const head = `GET /v1/pets HTTP/1.1\r\nAuthorization: Bearer ${service.key}\r\nConnection: close\r\n\r\n`;
  const received = await send(head);
  expect(received).toMatch(/^HTTP\/1\.1 400 /);
  expect(received).toContain('x-ratelimit-remaining: ');
  expect(received).toContain('{"code":"invalid_request"');
});

test('two Hosts are a 400', async () => {
  const received = await send(
    lines('GET /v1/pets HTTP/1.1', 'Host: y', `Authorization: Bearer ${service.key}`),
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
    lines('GET /v1/pets HTTP/1.1', 'Expect: miracles', `Authorization: Bearer ${service.key}`),
  );
  expect(received).toMatch(/^HTTP\/1\.1 200 /);
});

test('a client that disconnects in the middle of its body does no harm', async () => {
  await new Promise<void>((resolve) => {
    const socket = connect(service.port, '127.0.0.1', () => {
      const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.key}\r\n`;
      socket.write(`${head}Content-Type: application/json\r\nContent-Length: 500\r\n\r\n{"name":`, () => {
        socket.destroy();
        resolve();
      });
    });
  });
});
