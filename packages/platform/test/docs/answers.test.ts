import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { json } from 'node:stream/consumers';
import {
  type Caller,
  createCaller,
  post,
  type TestResponse,
  until,
  untilServed,
} from '@animal-store/platform/testing';
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import {
  appRouter,
  create,
  definition,
  INSERT_EXAMPLES,
  list,
  newItem,
  otherList,
  REFUSED,
  REUSE_EXAMPLES,
  read,
  resources,
} from '#operations-under-test';
import { METHODS_WITH_BODY } from '../../src/contract/protocol.js';
import { listOperations } from '../../src/operations/list-operations.js';
import { breakTable } from '../support/broken-table.js';
import {
  bodyOf,
  callRpc,
  existingPath,
  expectInvalidIdsRejected,
  expectUnstorableBodiesRejected,
  fillPath,
  ordinaryInit,
  readPathParameters,
  requiredQuery,
} from '../support/document-requests.js';
import { holdCreate } from '../support/hold-create.js';
import { createChecker, type ListedOperation } from '../support/openapi-checker.js';
import { exchange, readResponses } from '../support/raw-http.js';
import { startTcpProxy } from '../support/tcp-proxy.js';
import { createTestDatabase, startService, type TestService } from '../support/test-service.js';

type Init = Parameters<Caller>[1];

const checker = createChecker(resources);
const { operations, findOperation, expectDescribed } = checker;

let service: TestService;
let call: Caller;
const closers: (() => Promise<unknown>)[] = [];

/** Starts a service that has enough items for the example of every body that names one. */
async function startFilled(databaseUrl?: string): Promise<TestService> {
  const filled = await startService({ ...(databaseUrl !== undefined && { databaseUrl }) });
  await filled.database.pool.query(INSERT_EXAMPLES);
  return filled;
}

beforeAll(async () => {
  service = await startFilled();
  call = without500(createCaller(service));
});
beforeEach(() => service.database.pool.query(REUSE_EXAMPLES));
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});
afterAll(() => service.close());

function without500(by: Caller): Caller {
  return async (path, init) => {
    const response = await by(path, init);
    if (response.status === 500) throw new Error(`${init?.method ?? 'GET'} ${path} responded with 500`);
    return response;
  };
}

const isIdempotent = ({ parameters = [] }: ListedOperation) =>
  parameters.some(({ name }) => name === 'Idempotency-Key');

const covered = new Set<string>();

function expectCovered(operationId: string, response: TestResponse): void {
  expectDescribed(operationId, response);
  covered.add(`${operationId} ${response.status}`);
}

async function expectStatus(operationId: string, status: number, path: string, init?: Init, by = call) {
  // A busy machine may be too late for any other.
  const response = await until(async () => {
    const sent = await by(`/v1${path}`, init);
    return sent.status === 503 && status !== 503 ? undefined : sent;
  });
  expect([operationId, path, response.status]).toEqual([operationId, path, status]);
  expectCovered(operationId, response);
  return response;
}

async function expectEvery(
  status: number,
  init: Init = {},
  { key }: Pick<TestService, 'key'> = service,
  by = call,
) {
  for (const operation of operations) {
    const request = { ...ordinaryInit(operation), ...init };
    const path = fillPath(operation, '1') + requiredQuery(operation, { hint: key.slice(0, 12) });
    await expectStatus(operation.operationId, status, path, request, by);
  }
}

test('every operation responds to an ordinary request as the document says', async () => {
  for (const operation of operations) {
    // One of its own, because the operation may end it. The item is created with it, too, and may belong to it.
    const { key } = await service.keys.create({ name: 'ordinary', plan: 'free' });
    const byKey: Caller = (path, init) => call(path, { ...init, key });
    await service.database.pool.query(REUSE_EXAMPLES);
    const path = await existingPath(operations, operation, byKey);
    const query = requiredQuery(operation, { hint: key.slice(0, 12) });
    const response = await untilServed(() => byKey(`/v1${path}${query}`, ordinaryInit(operation)));
    expect([operation.operationId, response.status]).toEqual([
      operation.operationId,
      expect.toSatisfy(isSuccess),
    ]);
    expectCovered(operation.operationId, response);
  }
});

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

test('a page that is not the last has a Link as the document says', async () => {
  await expectStatus(list.name, 200, `${list.documentPath}?${list.filterQuery}`);
  expect(
    (await expectStatus(list.name, 200, `${list.documentPath}?limit=2&cursor=1`)).headers.has('link'),
  ).toBe(true);
  const other = await expectStatus(otherList.name, 200, `${otherList.path.slice(3)}?limit=2`);
  expect(other.body).toHaveLength(2);
  expect(other.headers.has('link')).toBe(true);
});

const INVALID: [string, number, string, Init?][] = [
  [list.name, 400, `${list.documentPath}?limit=0`],
  [list.name, 400, `${list.documentPath}?cursor=x`],
  [list.name, 400, `${list.documentPath}?limit=1&limit=2`],
  [otherList.name, 400, `${otherList.path.slice(3)}?limit=101`],
  [create.name, 400, create.documentPath, post({})],
  [create.name, 400, create.documentPath, post(newItem('', 1.5))],
  [create.name, 400, create.documentPath, post(create.body, { 'idempotency-key': 'with space' })],
  [read.name, 404, read.pathOf(999999).replace('/v1', '')],
  [read.name, 404, read.pathOf(2 ** 53).replace('/v1', '')],
];

test('every operation rejects invalid requests as the document says', async () => {
  for (const [operationId, status, path, init] of INVALID)
    await expectStatus(operationId, status, path, init);
  for (const operation of operations) {
    const { operationId, method, parameters = [], requestBody } = operation;
    const [query] = parameters.filter((parameter) => parameter.in === 'query');
    const path = fillPath(operation, '1');
    await expectStatus(operationId, 405, path, { method: 'PROPFIND' });
    if (parameters.some((parameter) => parameter.in === 'path')) {
      await expectStatus(operationId, 404, fillPath(operation, 'none'), ordinaryInit(operation));
    }
    if (query) await expectStatus(operationId, 400, `${path}?${query.name}=1&${query.name}=1`, { method });
    if (!METHODS_WITH_BODY.has(method)) continue;
    if (requestBody !== undefined) await expectStatus(operationId, 400, path, { ...post('{'), method });
    await expectStatus(operationId, 413, path, { ...post('x'.repeat(70_000)), method });
    await expectStatus(operationId, 415, path, { ...post('{}', { 'content-type': 'text/plain' }), method });
    await expectStatus(operationId, 415, path, { ...post('{}', { 'content-encoding': 'gzip' }), method });
  }
});

test('what the state of an item refuses is a 409 as the document says', async () => {
  for (const [operationId, path, change] of REFUSED) {
    const { method } = findOperation(operationId);
    await expectStatus(operationId, 409, path, { ...post(change), method });
  }
});

test('every operation rejects an unknown transfer coding as the document says', async () => {
  const fields = [
    `Authorization: Bearer ${service.key}`,
    'Transfer-Encoding: gzip, chunked',
    'Connection: close',
  ];
  for (const operation of operations) {
    const { operationId, method } = operation;
    const head = [`${method} /v1${fillPath(operation, '1')} HTTP/1.1`, 'Host: x', ...fields].join('\r\n');
    const [response] = readResponses(await exchange(service.port, `${head}\r\n\r\n0\r\n\r\n`));
    if (response?.status !== 501) throw new Error(`${operationId} responded with ${response?.status}`);
    expectCovered(operationId, { ...response, body: JSON.parse(response.body) });
  }
});

test('every operation responds as the document says to a request that is not proper HTTP', async () => {
  for (const operation of operations) {
    const response = await callWithoutHost(operation);
    expect([operation.operationId, response.status]).toEqual([operation.operationId, 400]);
    expectCovered(operation.operationId, response);
  }
});

/** HTTP/1.1 requires a Host, which fetch always sends. */
async function callWithoutHost(operation: ListedOperation): Promise<TestResponse> {
  const { method } = operation;
  const headers = { authorization: `Bearer ${service.key}`, 'content-type': 'application/json' };
  const path = `/v1${fillPath(operation, '1')}`;
  const sent = request({ port: service.port, path, method, headers, setHost: false }).end();
  const [received] = (await once(sent, 'response')) as [IncomingMessage];
  const fields = Object.entries(received.headersDistinct).map(([name, values = []]) => [
    name,
    values.join(', '),
  ]);
  const body = await json(received);
  return { status: received.statusCode ?? 0, headers: new Headers(fields as [string, string][]), body };
}

test('no operation responds with 500 to a body that the database cannot store', async () => {
  await expectUnstorableBodiesRejected(checker, call);
});

test('every operation responds with 404 to a path whose identifier is not an integer within bounds', async () => {
  await expectInvalidIdsRejected(checker, call);
});

test('no operation responds with 500 for an item that others refer to', async () => {
  const referred = operations.filter(({ parameters = [] }) => parameters.some((each) => each.in === 'path'));
  expect(referred).not.toEqual([]);
  for (const operation of referred) {
    const path = fillPath(operation, '1');
    const input = { ...readPathParameters(operation, path), ...(bodyOf(operation) as object | undefined) };
    await callRpc(call, operation, input);
    expectCovered(operation.operationId, await call(`/v1${path}`, ordinaryInit(operation)));
  }
});

test('without a valid key every operation responds as the document says', async () => {
  await expectEvery(401, { key: null });
  await expectEvery(401, { key: 'nonsense' });
});

test('without its scope every operation responds as the document says', async () => {
  const limits = { plan: 'enterprise', perMinute: 1_000, perDay: 1_000, expiresAt: null } as const;
  for (const { operationId, security } of operations) {
    const scopes = definition.scopes.filter((scope) => !JSON.stringify(security).includes(`"${scope}"`));
    // Every key may call it.
    if (scopes.length === definition.scopes.length) continue;
    const { key } = await service.keys.create({ name: operationId, scopes, ...limits });
    const operation = findOperation(operationId);
    const request = { ...ordinaryInit(operation), key };
    await expectStatus(operationId, 403, fillPath(operation, '1'), request);
  }
});

test('over the limit, and when banned, every operation responds as the document says', async () => {
  const limited = { plan: 'enterprise', perMinute: 1, perDay: 100, expiresAt: null } as const;
  const free = new Map(listOperations(appRouter).map(({ name, freeForKey }) => [name, freeForKey]));
  for (const operation of operations) {
    const { operationId } = operation;
    // What is free for the key has a window as large as an address has. What has none is denied without a valid key.
    const isFree = free.get(operationId) !== undefined;
    const { key } =
      free.get(operationId) === 'always'
        ? { key: 'unknown' }
        : await service.keys.create({ name: operationId, ...limited });
    const node = isFree
      ? await startService({ databaseUrl: service.databaseUrl, anonymousPerMinute: 1 })
      : service;
    if (isFree) closers.push(() => node.close());
    const request = { ...ordinaryInit(operation), key };
    const responses: TestResponse[] = [];
    for (let n = 0; n < 3; n += 1)
      responses.push(await createCaller(node)(`/v1${fillPath(operation, '1')}`, request));
    for (const response of responses) expectCovered(operationId, response);
    expect(responses.slice(1).map(({ body }) => body.code)).toEqual([
      'rate_limit_exceeded',
      isFree ? 'rate_limit_exceeded' : 'api_key_banned',
    ]);
  }
});

test('when a query fails, or the database is unreachable, every operation responds as the document says', async () => {
  const url = new URL(await createTestDatabase());
  const proxy = await startTcpProxy({ host: url.hostname, port: Number(url.port) });
  url.port = String(proxy.port);
  const broken = await startFilled(url.href);
  onTestFinished(async () => {
    await broken.close();
    await proxy.close();
  });
  const by = createCaller(broken);
  const { pool } = broken.database;
  await by(list.path);
  const { rows } = await pool.query<{ tablename: string }>(
    `SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename NOT IN ('api_keys', '_prisma_migrations')`,
  );
  for (const { tablename } of rows) await breakTable(pool, tablename);
  await pool.query('CREATE TRIGGER fail BEFORE UPDATE ON api_keys FOR EACH ROW EXECUTE FUNCTION fail_row()');
  await expectEvery(500, {}, broken, by);
  await proxy.cut();
  await expectEvery(503, {}, broken, by);
});

test('every idempotent operation responds to a repetition as the document says', async () => {
  for (const operation of operations.filter(isIdempotent)) {
    const { operationId, method } = operation;
    const path = await existingPath(operations, operation, call);
    const request = ordinaryInit(operation, { 'idempotency-key': 'one' });
    const first = await call(`/v1${path}`, request);
    expect(first.status, `${operationId} has to create within ctx.once, and to succeed`).toBeLessThan(300);
    const replay = await expectStatus(operationId, first.status, path, request);
    expect([replay.headers.get('idempotency-replayed'), replay.body]).toEqual(['true', first.body]);
    expect(replay.headers.get('location')).toBe(first.headers.get('location'));
    const other = `${JSON.stringify(bodyOf(operation) ?? {})} `;
    await expectStatus(operationId, 422, path, { ...post(other, { 'idempotency-key': 'one' }), method });
  }
});

test('while the first request is running, every idempotent operation responds as the document says', async () => {
  const first = await service.database.pool.connect();
  await first.query('BEGIN');
  closers.push(async () => first.release());
  for (const operation of operations.filter(isIdempotent)) {
    const { operationId } = operation;
    for (const { id: apiKeyId } of await service.keys.list())
      await holdCreate(first, { apiKeyId, operation: operationId, value: 'two' });
    const request = ordinaryInit(operation, { 'idempotency-key': 'two' });
    await expectStatus(operationId, 409, await existingPath(operations, operation, call), request);
  }
  await first.query('ROLLBACK');
});

test('a deprecated operation says so before its removal, and responds as the document says after it', async () => {
  const deprecated = operations.filter((operation) => operation.deprecated);
  const { databaseUrl } = service;
  const later = await startService({ databaseUrl, now: () => Date.parse('2030-12-05T00:00:00Z') });
  closers.push(() => later.close());
  for (const operation of deprecated) {
    const path = fillPath(operation, '1');
    for (const init of [{}, { key: null }]) {
      const { headers } = await call(`/v1${path}`, { ...ordinaryInit(operation), ...init });
      expect(headers.get('deprecation')).toBe('@1764892800');
      expect(headers.get('sunset')).toBe('Thu, 05 Dec 2030 00:00:00 GMT');
      expect(headers.get('link')).toContain('rel="successor-version"');
    }
    await expectStatus(
      operation.operationId,
      410,
      path,
      ordinaryInit(operation),
      without500(createCaller(later)),
    );
  }
});

test('the checker itself detects everything that the document does not describe', async () => {
  const { status, headers, body } = await call(read.pathOf(1));
  const check = (change: Partial<TestResponse>) => () =>
    expectDescribed(read.name, { status, headers, body, ...change });
  const changed = (name: string, value: string | null) => {
    const copy = new Headers(headers);
    if (value === null) copy.delete(name);
    else copy.set(name, value);
    return { headers: copy };
  };
  expect(check({})).not.toThrow();
  expect(check({ status: 202 })).toThrow(new RegExp(`${read.name} answered 202 .*does not describe`));
  expect(check(changed('x-ratelimit-limit', null))).toThrow(/X-RateLimit-Limit/);
  expect(check(changed('ratelimit', 'many'))).toThrow(/RateLimit/);
  expect(check(changed('x-powered-by', 'us'))).toThrow(/x-powered-by/);
  expect(check(changed('content-type', 'text/html'))).toThrow(/text\/html/);
  expect(check({ body: { ...body, secret: 1 } })).toThrow(
    new RegExp(`${read.name} 200: .*NOT have additional`),
  );
  expect(check({ body: { ...body, id: '1' } })).toThrow(new RegExp(`${read.name} 200: .*id must be`));
});

test('every status in the document was caused by a request above', () => {
  const listed = operations.flatMap(({ operationId, responses }) =>
    Object.keys(responses).map((status) => `${operationId} ${status}`),
  );
  expect([...covered].sort()).toEqual(listed.sort());
});
