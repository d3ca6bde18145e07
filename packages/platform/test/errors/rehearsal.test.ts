import { type Caller, createCaller, message, rpcPath, until } from '@animal-store/platform/testing';
import { pino } from 'pino';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { create, definition, list, otherList, read, resources } from '#operations-under-test';
import { livePrefix } from '../../src/keys/format.js';
import { listOperations } from '../../src/operations/list-operations.js';
import { createRouter } from '../../src/operations/resource.js';
import { fillPath, ordinaryInit, readPathParameters } from '../support/document-requests.js';
import { errorOf, errorTable } from '../support/error-table.js';
import { MODE_NAMES, toolCalls } from '../support/mcp.js';
import { createChecker, type ListedOperation } from '../support/openapi-checker.js';
import { startService, useService } from '../support/test-service.js';

const CODES = Object.keys(errorTable);

const { operations, expectDescribed, findResponse } = createChecker(resources);

let call: Caller;

const { service } = useService({ resources });

beforeAll(async () => {
  const send = createCaller(service);
  // A 503 that nobody has asked for says that the machine is busy.
  call = (path, init) =>
    until(async () => {
      const response = await send(path, init);
      return response.status === 503 && !response.headers.has('preference-applied') ? undefined : response;
    });
});

const prefer = (code: string, init: RequestInit = {}): RequestInit => ({
  ...init,
  headers: { ...(init.headers as Record<string, string>), prefer: `error=${code}` },
});

const declarations = new Map(listOperations(createRouter(resources)).map((each) => [each.name, each]));
/** Whether only other operations really respond with it, as they declare */
const isOfOthers = (code: string, { operationId }: ListedOperation) => {
  const { appliesTo } = errorOf(code);
  const { errors = [], idempotent = false } = declarations.get(operationId) ?? {};
  return appliesTo === 'declaring' ? !errors.includes(code) : appliesTo === 'isIdempotent' && !idempotent;
};

/** What every operation says. The scope is the operation's own, and so is what an outage means; a denial says until when. */
const standardMessage = (code: string) =>
  code === 'insufficient_scope' || code === 'service_unavailable'
    ? expect.stringMatching(/^The API key lacks |^The database cannot serve the request now\. /)
    : expect.stringMatching(
        new RegExp(`^${errorOf(code).message.replaceAll(/[.<>]/g, '\\$&')}(?: Try again in \\d+ s\\.)?$`),
      );

/** The codes that a protocol responds with */
const codesOf = (protocol: 'rest' | 'trpc' | 'mcp') =>
  CODES.filter((code) => (errorOf(code).protocol ?? protocol) === protocol);

/** One that reads and one that creates: which operation it is called for makes no difference to a rehearsed error but its scope. */
const EXAMPLES: readonly string[] = [list.name, create.name];
const examples = operations.filter(({ operationId }) => EXAMPLES.includes(operationId));

const callRest = (operation: ListedOperation, code: string, by = call) =>
  by(`/v1${fillPath(operation, '1')}`, prefer(code, ordinaryInit(operation)));

const callRpc = ({ operationId, method }: ListedOperation, code: string, by = call) =>
  method === 'GET'
    ? by(rpcPath(operationId), prefer(code))
    : by(
        `/trpc/${operationId}`,
        prefer(code, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }),
      );

describe.each(codesOf('rest'))('%s', (code) => {
  test('every operation responds with it over REST, as the document says', async () => {
    for (const operation of operations) {
      const response = await callRest(operation, code);
      const { status } = errorOf(code);
      expect(response.status).toBe(status);
      expect(response.body).toEqual({ code, message: standardMessage(code), status });
      expect(response.headers.get('preference-applied')).toBe(`error=${code}`);
      expect(response.headers.has('x-ratelimit-remaining')).toBe(true);
      if (!isOfOthers(code, operation) && findResponse(operation, status))
        expectDescribed(operation.operationId, response);
    }
  });

  test('operations respond with the same over tRPC, also in a batch and in a stream', async () => {
    for (const operation of examples) {
      const { body: error } = await callRest(operation, code);
      const single = await callRpc(operation, code);
      expect([single.status, single.body.error.data.error]).toEqual([
        error.status,
        { ...error, message: standardMessage(code) },
      ]);
      expect(single.headers.get('preference-applied')).toBe(`error=${code}`);
    }
    const path = `${list.trpc},getKey?batch=1`;
    const batch = await call(path, prefer(code));
    expect(batch.status).toBe(errorOf(code).status);
    for (const each of [batch.body].flat()) expect(each.error.data.error.code).toBe(code);
    const stream = await fetch(service.url + path, {
      headers: {
        authorization: `Bearer ${service.key}`,
        'trpc-accept': 'application/jsonl',
        prefer: `error=${code}`,
      },
    });
    for (const name of ['preference-applied', 'retry-after', 'www-authenticate'])
      expect(stream.headers.get(name), name).toBe(batch.headers.get(name));
    expect((await stream.text()).split(`"code":"${code}"`).length - 1).toBe([batch.body].flat().length);
  });
});

describe.each(MODE_NAMES)('for a tool of a client of %s', (mode) => {
  test.each(codesOf('mcp'))(
    '%s is the result, or the response if admission responds with it',
    async (code) => {
      for (const each of examples) {
        const { operationId, security } = each;
        const { status: expectedStatus } = errorOf(code);
        const expected = { code, status: expectedStatus, message: expect.any(String) };
        const input = readPathParameters(each, fillPath(each, '1'));
        const init = toolCalls[mode](operationId, input, { prefer: `error=${code}` });
        const { status, body, headers } = await call('/mcp', init);
        expect(headers.get('preference-applied')).toBe(`error=${code}`);
        const isOfHead = code === 'insufficient_scope' && mode === '2026-07-28';
        if (
          isOfHead ||
          code === 'origin_not_allowed' ||
          [401, 405, 413, 415, 429, 501].includes(errorOf(code).status)
        ) {
          expect([status, body.code, body.status]).toEqual([expected.status, code, expected.status]);
        } else {
          const { fields: _fields, scope, retryAfterSeconds, ...error } = body.result.structuredContent;
          expect([status, body.result.isError]).toEqual([200, true]);
          expect(error).toEqual(expected);
          // A model sees neither headers nor addresses.
          expect(error.message).not.toMatch(/Idempotency-Key|\bbody\b|address/);
          const [needed] = security.flatMap(Object.values).flat();
          expect(scope).toBe(code === 'insufficient_scope' ? needed : undefined);
          expect(retryAfterSeconds).toBe(code === 'service_unavailable' ? 1 : undefined);
        }
      }
    },
  );

  test('a preference is no argument, and what calls no tool responds with it, too', async () => {
    const result = await call('/mcp', toolCalls[mode](list.name, { prefer: 'error=not_found' }));
    expect(result.body.result.structuredContent.fields).toEqual({
      prefer: 'is not an argument of this tool',
    });
    const { status, body } = await call(
      '/mcp',
      message('tools/list', {}, { prefer: 'error=service_unavailable' }),
    );
    expect([status, body.code]).toEqual([503, 'service_unavailable']);
  });
});

test('headers are those of the real error', async () => {
  const header = async (code: string, name: string) =>
    (await call(list.path, prefer(code))).headers.get(name);
  expect(await header('invalid_api_key', 'www-authenticate')).toBe('Bearer');
  expect(await header('insufficient_scope', 'www-authenticate')).toBe(
    `Bearer error="insufficient_scope", scope="${list.scope}"`,
  );
  expect(Number(await header('rate_limit_exceeded', 'retry-after'))).toBeGreaterThan(0);
  expect(await header('api_key_banned', 'retry-after')).toBe('300');
  expect(Number(await header('service_unavailable', 'retry-after'))).toBeGreaterThan(0);
  const requests = [
    ...[list.path, read.pathOf(1), '/v1/key', list.trpc].map((path) => ({ path, init: {} })),
    ...MODE_NAMES.map((mode) => ({ path: '/mcp', init: toolCalls[mode](list.name) })),
    { path: '/mcp', init: message('tools/list') },
  ];
  for (const { path, init } of requests) {
    const real = await call(path, { method: 'PROPFIND' });
    const rehearsed = await call(path, prefer('method_not_allowed', init));
    expect([path, rehearsed.headers.get('allow')]).toEqual([path, real.headers.get('allow')]);
  }
  const { body } = await call(`${list.trpc},${otherList.name}?batch=1`, prefer('insufficient_scope'));
  expect(body.map(({ error }: never) => (error as { data: { scope: string } }).data.scope)).toEqual([
    list.scope,
    otherList.scope,
  ]);
});

test('a body that cannot be read is refused as it is, over both protocols', async () => {
  const json = { 'content-type': 'application/json' };
  for (const [status, body] of [
    [413, 'x'.repeat(70_000)],
    [400, new Uint8Array([0x22, 0xff, 0x22])],
    [400, '{'],
  ] as const) {
    for (const path of [create.path, create.trpc]) {
      const { headers, ...response } = await call(
        path,
        prefer('internal_error', { method: 'POST', headers: json, body }),
      );
      expect([path, response.status, headers.get('preference-applied')]).toEqual([path, status, null]);
    }
  }
});

test('a code of another protocol is unknown, because it would never really be the response', async () => {
  for (const code of CODES.filter((each) => !codesOf('rest').includes(each)))
    for (const path of [list.path, list.trpc])
      expect([code, path, (await call(path, prefer(code))).status]).toEqual([code, path, 400]);
  const { status, body } = await call(
    '/mcp',
    message('tools/list', {}, { prefer: 'error=origin_not_allowed' }),
  );
  expect([status, body.code]).toEqual([403, 'origin_not_allowed']);
});

test('without a body the response is what is rehearsed, over every protocol', async () => {
  const headers = { 'content-type': 'application/json' };
  for (const path of [create.path, create.trpc, '/mcp', read.pathOf(7)]) {
    const method = path === read.pathOf(7) ? 'PATCH' : 'POST';
    for (const body of ['', undefined]) {
      const init = prefer('service_unavailable', { method, headers, ...(body !== undefined && { body }) });
      const { status, headers: responded } = await call(path, init);
      expect([path, body, status]).toEqual([path, body, 503]);
      expect(responded.get('preference-applied')).toBe('error=service_unavailable');
    }
  }
});

test('the log and the metrics mark what was rehearsed, and nothing else', async () => {
  const lines: string[] = [];
  const log = pino({ level: 'info' }, { write: (line) => void lines.push(line) });
  const logged = await startService({ log, resources });
  onTestFinished(() => logged.close());
  const callLogged = createCaller(logged);
  await callLogged(list.path, prefer('internal_error'));
  await callLogged(`${list.trpc},getKey?batch=1`, prefer('service_unavailable'));
  await callLogged(list.path, prefer('payload_too_large'));
  await callLogged(list.path, { headers: { prefer: 'error=teapot' } });
  await callLogged(list.path);
  await expect.poll(() => lines.filter((line) => line.includes('"request"')).length).toBe(5);
  const requests = lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request');
  expect(requests.map(({ status, rehearsed, level }) => [status, rehearsed, level])).toEqual([
    [500, true, 30],
    [503, true, 30],
    [413, true, 30],
    [400, undefined, 30],
    [200, undefined, 30],
  ]);
  const metrics = await (await fetch(`${logged.url}/metrics`)).text();
  const series = [...metrics.matchAll(/^boatyard_http_request_duration_seconds_count\{(.*)\} 1$/gm)];
  const isRehearsed = (status: number) =>
    series
      .filter(([, labels]) => labels?.includes(`status="${status}"`))
      .map(([, labels]) => labels?.includes('rehearsed="true"'));
  expect([500, 503, 413, 400, 200].map(isRehearsed)).toEqual([[true], [true], [true], [false], [false]]);
});

test('a rehearsed create creates nothing, and counts like any request', async () => {
  const operation = operations.find(({ operationId }) => operationId === create.name) as ListedOperation;
  const before = await call(`${list.path}?limit=100`);
  const { headers } = await callRest(operation, 'internal_error');
  const left = (response: { headers: Headers }) => Number(response.headers.get('x-ratelimit-remaining'));
  expect(left({ headers })).toBe(left(before) - 1);
  expect((await call(`${list.path}?limit=100`)).body).toEqual(before.body);
});

test('the preference is found among others, however it is written', async () => {
  for (const value of [
    'error="not_found"',
    'ERROR=not_found',
    'return=minimal, error = not_found',
    'error=not_found; why="a test"',
    'error="not\\_found"',
    ', ,error=not_found;;',
    'x="a\\", error=internal_error, b", error=not_found',
    'error=not_found, error=internal_error',
  ]) {
    const { status } = await call(list.path, { headers: { prefer: value } });
    expect([value, status]).toEqual([value, 404]);
  }
  for (const value of [
    'return=minimal',
    'respond-async, wait=10',
    'terror=not_found',
    'x="error"',
    'x="1, error=not_found"',
    'x;error=not_found',
    'x=y z, error=not_found',
  ]) {
    const { status, headers } = await call(list.path, { headers: { prefer: value } });
    expect([value, status, headers.get('preference-applied')]).toEqual([value, 200, null]);
  }
});

test('an unknown code is a 400 that lists those there are', async () => {
  for (const code of ['=teapot', '=', '="__proto__"', '=constructor', '=""', '']) {
    for (const path of [list.path, list.trpc]) {
      const { status, headers, body } = await call(path, { headers: { prefer: `error${code}` } });
      const { message } = body.error?.data.error ?? body;
      expect([path, code, status, headers.get('preference-applied')]).toEqual([path, code, 400, null]);
      for (const known of CODES) expect(message.includes(known), known).toBe(codesOf('rest').includes(known));
    }
  }
});

test('a real error comes first', async () => {
  const rehearsed = prefer('internal_error');
  expect((await call('/v1/nothing', rehearsed)).status).toBe(404);
  expect((await call(list.path, { ...rehearsed, key: null })).status).toBe(401);
  expect((await call(list.path, { ...rehearsed, method: 'DELETE' })).status).toBe(405);
});

test('in production every operation ignores the header', async () => {
  const live = await startService({ keyPrefix: livePrefix(definition.identity.keyPrefix), resources });
  const callLive = createCaller(live);
  await callLive(create.path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(create.body),
  });
  for (const operation of operations) {
    for (const by of [callRest, callRpc]) {
      const { status, headers } = await by(operation, 'internal_error', callLive);
      expect([operation.operationId, status, headers.get('preference-applied')]).toEqual([
        operation.operationId,
        expect.not.toSatisfy((code: number) => code === 500),
        null,
      ]);
    }
  }
  await live.close();
});
