import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { create, list, newItem, TABLE, TEXT } from '#operations-under-test';
import { exchange, type RawResponse, readResponses } from '../support/raw-http.js';
import { useService } from '../support/test-service.js';

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

const { service } = useService();

/** Whatever was sent, the service still responds. */
afterEach(async () => {
  expect((await fetch(`${service.url}/health/live`)).status).toBe(200);
});

/** A request with a valid key; further header fields may follow the request line. */
function request(requestLine: string, fields: readonly string[] = [], body = ''): string {
  const authorization = `Authorization: Bearer ${service.key}`;
  return [requestLine, authorization, ...fields, '', body].join('\r\n');
}

const get = (...fields: string[]) => request(`GET ${list.path}?limit=1 HTTP/1.1`, ['Host: x', ...fields]);

function post(body: string, ...fields: string[]): string {
  const framing = [`Content-Length: ${body.length}`, 'Content-Type: application/json'];
  return request(`POST ${create.path} HTTP/1.1`, ['Host: x', ...framing, ...fields], body);
}

const createRequest = (name: string, ...fields: string[]) => post(JSON.stringify(newItem(name)), ...fields);

const CLOSE = 'Connection: close';

async function send(...requests: string[]): Promise<RawResponse[]> {
  return readResponses(await exchange(service.port, requests.join('')));
}

const statuses = (responses: readonly RawResponse[]) => responses.map(({ status }) => status);

function codeOf({ status, body }: RawResponse): string {
  const error = JSON.parse(body);
  expect(Object.keys(error).sort()).toEqual(['code', 'message', 'status']);
  expect(error.status).toBe(status);
  return error.code;
}

function countItems(prefix: string): Promise<number> {
  return service.database.pool
    .query(`SELECT count(*)::int AS count FROM ${TABLE} WHERE ${TEXT} LIKE $1`, [`${prefix}%`])
    .then(({ rows: [{ count }] }) => count);
}

test('a malformed body gets the error, and is not stored', async () => {
  const chunked = ['Host: x', 'Content-Type: application/json', 'Transfer-Encoding: chunked'];
  const broken = request(
    `POST ${create.path} HTTP/1.1`,
    chunked,
    `zz\r\n${JSON.stringify(newItem('broken'))}\r\n`,
  );
  const [response, ...others] = await send(broken);
  expect([response?.status, response?.headers.get('connection'), others]).toEqual([400, 'close', []]);
  expect(await countItems('broken')).toBe(0);
});

test.each([
  ['garbage', 'garbage\r\n\r\n'],
  ['a lot of garbage', 'garbage\r\n\r\n'.repeat(50_000)],
  ['CONNECT', 'CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n'],
])('%s behind requests ends the connection with one error', async (name, garbage) => {
  const received = statuses(await send(createRequest(`${name} 1`), createRequest(`${name} 2`), garbage));
  expect(received.filter((status) => status === 400)).toHaveLength(1);
});

test('an unknown method is a 501 behind other requests, too', async () => {
  const responses = await send(get(), get(), 'FROBNICATE / HTTP/1.1\r\nHost: x\r\n\r\n');
  const last = responses.at(-1) ?? expect.unreachable();
  expect([last.status, codeOf(last)]).toEqual([501, 'not_implemented']);
});

test('a request that was answered before its malformed body gets no second answer', async () => {
  const head = 'POST /v1/nope HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';
  const socket = connect(service.port, '127.0.0.1', () => socket.write(head));
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
  });
  await once(socket, 'data');
  socket.write('zz\r\n');
  await once(socket, 'close');
  expect(statuses(readResponses(received))).toEqual([404]);
});

test('nothing behind a request that ends the connection is answered', async () => {
  const last = get(CLOSE);
  expect(statuses(await send(last, 'garbage\r\n\r\n'))).toEqual([200]);
});

test.each([
  ['one request', 1],
  ['pipelined requests', 3],
])('a client that ends its side of the connection behind %s gets the answers', async (_name, count) => {
  const socket = connect({ port: service.port, host: '127.0.0.1', allowHalfOpen: true });
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
  });
  socket.end(
    Array.from({ length: count }, (_, index) => createRequest(`half-closed ${count} ${index}`)).join(''),
  );
  await once(socket, 'close');
  expect(statuses(readResponses(received))).toEqual(Array(count).fill(201));
  expect(await countItems(`half-closed ${count}`)).toBe(count);
});

test.each([
  ['that has sent nothing', ''],
  ['that has its answer', 'GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['in the middle of a head', 'GET /health/live HTTP/1.1\r\nHo'],
  ['in the middle of a body', `POST ${create.path} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{`],
])('a connection whose client ends its side is closed at once: one %s', async (_name, bytes) => {
  const socket = connect({ port: service.port, host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => {});
  if (bytes !== '') socket.write(bytes);
  if (bytes.endsWith('\r\n\r\n')) await once(socket, 'data');
  socket.resume();
  socket.end();
  await once(socket, 'close');
});

test('a connection ends soon after its refusal, even if the client goes on sending', async () => {
  const socket = connect({ port: service.port, host: '127.0.0.1', allowHalfOpen: true });
  socket.resume();
  const closed = new Promise((resolve) => socket.on('close', resolve));
  // The connection may end while it is written to.
  socket.on('error', () => {});
  const timer = setInterval(() => socket.write('garbage\r\n'), 50);
  await closed;
  clearInterval(timer);
});

test('a client that disconnects behind a CONNECT does no harm', async () => {
  const socket = connect(service.port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write(`${createRequest('left')}CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n`);
  await expect.poll(() => countItems('left')).toBe(1);
  socket.resetAndDestroy();
});

test('a refusal by the parser has a Date and an X-Request-Id', async () => {
  for (const bytes of ['garbage\r\n\r\n', 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n']) {
    const [response, ...others] = await send(bytes);
    expect(others).toEqual([]);
    expect(response?.headers.get('cache-control')).toBe('no-store');
    expect(response?.headers.get('x-request-id')).toMatch(UUID);
    const ageMs = Date.now() - Date.parse(response?.headers.get('date') ?? '');
    expect(ageMs).toBeGreaterThanOrEqual(0);
    expect(ageMs).toBeLessThan(60_000);
  }
});

test.each([
  [`FROB ${list.path} HTTP/1.1`, 501],
  [`get ${list.path} HTTP/1.1`, 501],
  [`GETS ${list.path} HTTP/1.1`, 501],
  [`PLAY ${list.path} HTTP/1.1`, 501],
  ['X-!#$ /nowhere HTTP/1.0', 501],
  ['FROB HTTP/1.1', 400],
  [`FROB  ${list.path} HTTP/1.1`, 400],
  [`two words ${list.path} HTTP/1.1`, 400],
  [`{FROB} ${list.path} HTTP/1.1`, 400],
  [`FROB ${list.path} HTTP/3.0`, 400],
])('"%s" is a %i', async (requestLine, status) => {
  const bytes = `${requestLine}\r\nHost: x\r\n\r\n`;
  const [refusal, ...others] = await send(bytes);
  if (refusal === undefined) throw new Error('no response');
  expect([refusal.status, others]).toEqual([status, []]);
  expect(codeOf(refusal)).toBe(status === 501 ? 'not_implemented' : 'invalid_request');
  expect(refusal.reason).toBe(status === 501 ? 'Not Implemented' : 'Bad Request');
  expect(refusal.body.includes('method')).toBe(status === 501);
  expect([...refusal.headers.keys()].filter((name) => name.includes('ratelimit'))).toEqual([]);
});

test.each([
  ['Transfer-Encoding: gzip, chunked'],
  ['Transfer-Encoding: GZIP,chunked'],
  ['Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked'],
])('"%s" is a 501 over both protocols and elsewhere, and keeps the connection', async (field) => {
  for (const path of [create.path, create.trpc, '/docs']) {
    const fields = ['Host: x', 'Content-Type: application/json', field];
    const encoded = request(`POST ${path} HTTP/1.1`, fields, '3\r\nabc\r\n0\r\n\r\n');
    const [refusal, next] = await send(encoded, get(CLOSE));
    expect([path, refusal?.status, next?.status]).toEqual([path, 501, 200]);
    expect(refusal?.body).toContain('"code":"not_implemented"');
    expect(refusal?.headers.has('x-ratelimit-remaining')).toBe(path !== '/docs');
  }
});

test('chunks alone are a transfer coding, in any case', async () => {
  const fields = ['Host: x', 'Content-Type: application/json', 'Transfer-Encoding: Chunked', CLOSE];
  const body = JSON.stringify(create.body);
  const chunks = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
  expect(statuses(await send(request(`POST ${create.path} HTTP/1.1`, fields, chunks)))).toEqual([201]);
});

test.each(['a b', 'a/b', 'a\\b', 'a@b', '<x>', 'x:y', 'x:80:80', 'ä', '[::1', '::1', '[x]', '%zz', 'x, y'])(
  'a Host of "%s" is a 400 over both protocols and elsewhere',
  async (host) => {
    for (const path of [list.path, list.trpc, '/docs', '/health/live', '/nope']) {
      for (const version of ['1.1', '1.0']) {
        const [response] = await send(request(`GET ${path} HTTP/${version}`, [`Host: ${host}`, CLOSE]));
        expect([path, version, response?.status]).toEqual([path, version, 400]);
        expect(response?.body).toContain('Host');
      }
    }
  },
);

test.each([
  'x',
  'x:80',
  'x:',
  '',
  'a_b.example',
  'xn--bcher-kva.example.',
  '127.0.0.1:3000',
  '[::1]:3000',
  '%41',
])('a Host of "%s" is accepted', async (host) => {
  expect(statuses(await send(request(`GET ${list.path} HTTP/1.1`, [`Host: ${host}`, CLOSE])))).toEqual([200]);
});

test('outside the protocols too, HTTP/1.1 needs exactly one Host, and HTTP/1.0 none', async () => {
  const statusOf = async (version: string, ...fields: string[]) =>
    statuses(await send(request(`GET /health/live HTTP/${version}`, [...fields, CLOSE])));
  expect(await statusOf('1.1')).toEqual([400]);
  expect(await statusOf('1.1', 'Host: x', 'Host: x')).toEqual([400]);
  expect(await statusOf('1.0')).toEqual([200]);
  expect(await statusOf('1.0', 'Host: x', 'Host: x')).toEqual([400]);
});

test.each([
  ['malformed JSON', '{'],
  ['no UTF-8', '"\xff"'],
  ['an invalid field', '{}'],
])('a body with %s keeps the connection', async (_name, body) => {
  const responses = await send(post(body), createRequest('kept', CLOSE));
  expect(statuses(responses)).toEqual([400, 201]);
  expect(responses[0]?.headers.get('connection')).toBe('keep-alive');
});
