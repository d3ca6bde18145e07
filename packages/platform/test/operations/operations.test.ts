import { type Caller, oldToolCall, post, toolCall } from '@animal-store/platform/testing';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { list } from '#operations-under-test';
import { createProcedure, type OperationMeta } from '../../src/operations/builder.js';
import { INPUT_ERROR, integer } from '../../src/operations/input.js';
import { listOperations } from '../../src/operations/list-operations.js';
import { createRouter, type Resource } from '../../src/operations/resource.js';
import { expectMcpErrorBody } from '../support/expect-error-body.js';
import { createChecker } from '../support/openapi-checker.js';
import { useService } from '../support/test-service.js';

type Method = OperationMeta['openapi']['method'];

const describe = (method: Method, path: `/${string}`): OperationMeta => ({
  openapi: { method, path, summary: `${method} ${path}` },
  stability: 'beta',
  scope: list.scope,
});
const procedure = createProcedure();
const size = z.enum(['small', 'large']).meta({ id: 'Size' });
const level = integer(1, 9).meta({ id: 'Level' });
const filters = z
  .object({ count: integer(0, 9), ratio: z.number().min(-9999).max(9999), isNew: z.boolean(), size, level })
  .partial()
  .meta({ id: 'Filters' });
const item = z.object({ id: integer(1, 99), note: z.string() }, { error: INPUT_ERROR });
const echo = z.record(z.string(), z.unknown()).meta({ id: 'Echo', examples: [{}] });

const echoes: Resource = {
  name: 'echoes',
  description: 'Operations that return their input',
  createStore: () => ({}),
  procedures: {
    find: procedure
      .meta(describe('GET', '/echoes'))
      .input(filters)
      .output(echo)
      .query(({ input }) => input),
    ping: procedure
      .meta(describe('GET', '/ping'))
      .output(z.void())
      .query(() => {}),
    replace: procedure
      .meta(describe('PUT', '/echoes/{id}'))
      .input(item)
      .output(echo)
      .mutation(({ input }) => input),
    exportAll: procedure
      .meta({ ...describe('GET', '/export'), cost: 10 })
      .output(z.void())
      .query(() => {}),
    remove: procedure
      .meta(describe('DELETE', '/echoes/{id}'))
      .input(item.partial({ note: true }))
      .output(z.void())
      .mutation(() => {}),
  },
};

const { call, service } = useService({ resources: [echoes] });

const put = (body: unknown) => ({ ...post(body), method: 'PUT' });

test('a query parameter has the type that the input requires', async () => {
  const { body } = await call('/v1/echoes?count=7&ratio=-0.5&isNew=true&size=large&level=3');
  expect(body).toEqual({ count: 7, ratio: -0.5, isNew: true, size: 'large', level: 3 });
  for (const query of ['count=1.5', 'ratio=1e3', 'isNew=1', 'isNew=TRUE', 'size=', 'level=10', 'level=x']) {
    expect([query, (await call(`/v1/echoes?${query}`)).status]).toEqual([query, 400]);
  }
});

test('path parameters are merged with the body, which cannot override them', async () => {
  expect((await call('/v1/echoes/7', put({ note: 'a' }))).body).toEqual({ id: 7, note: 'a' });
  expect((await call('/v1/echoes/7', put({ id: 8, note: 'a' }))).body).toEqual({ id: 7, note: 'a' });
  expect((await call('/v1/echoes/7', put('{"note":"a","__proto__":{"id":9}}'))).body).toEqual({
    id: 7,
    note: 'a',
  });
  for (const body of ['[]', 'null', '"a"', '{}']) {
    expect([body, (await call('/v1/echoes/7', put(body))).status]).toEqual([body, 400]);
  }
  expect((await call('/v1/echoes/100', put({ note: 1 }))).status).toBe(404);
  expect((await call('/v1/echoes/7', { ...put({ note: 'a' }), headers: {} })).status).toBe(415);
});

test('a method without a body ignores one, whatever its media type', async () => {
  for (const headers of [{}, { 'content-type': 'application/json' }, { 'content-type': 'text/plain' }]) {
    for (const body of [null, '', '{', '{"note":1}']) {
      const { status } = await call('/v1/echoes/7', { method: 'DELETE', headers, body });
      expect([headers, body, status]).toEqual([headers, body, 204]);
    }
  }
});

test('an operation without output is a 204 without a body over REST, and has no data over tRPC', async () => {
  const { status, body, headers } = await call('/v1/ping');
  expect([status, body, headers.get('content-type')]).toEqual([204, undefined, null]);
  expect((await call('/trpc/ping')).body).toEqual({ result: {} });
});

test('an operation that declares a cost counts as so many requests, over every protocol and in a batch', async () => {
  const cost = async (path: string, init: Parameters<Caller>[1] = {}) => {
    const plan = { plan: 'enterprise', perMinute: 25, perDay: 100, expiresAt: null } as const;
    const { key } = await service.keys.create({ name: path, ...plan });
    const { status, headers } = await call(path, { ...init, key });
    return [status, 25 - Number(headers.get('x-ratelimit-remaining'))];
  };
  expect(await cost('/v1/export')).toEqual([204, 10]);
  expect(await cost('/trpc/exportAll')).toEqual([200, 10]);
  expect(await cost('/trpc/exportAll,ping,exportAll?batch=1')).toEqual([200, 21]);
  expect(await cost('/trpc/exportAll,exportAll,exportAll?batch=1')).toEqual([429, 0]);
  expect(await cost('/mcp', toolCall('exportAll', {}))).toEqual([200, 10]);
  for (const head of [{}, { 'mcp-method': 'tools/call' }, { 'mcp-name': 'exportAll' }])
    expect(await cost('/mcp', oldToolCall('exportAll', {}, head))).toEqual([200, 10]);
  expect(await cost('/v1/ping')).toEqual([204, 1]);
  expect(createChecker([echoes]).findOperation('exportAll').description).toContain(
    'Each call counts as 10 requests.',
  );
});

test('a call whose cost only its body tells is denied where that is too much, and counts as the request that it was', async () => {
  const plan = { plan: 'enterprise', perMinute: 15, perDay: 100, expiresAt: null } as const;
  const { key } = await service.keys.create({ name: 'older client', ...plan });
  const send = async () => {
    const { status, headers, body } = await call('/mcp', { ...oldToolCall('exportAll', {}), key });
    return {
      status,
      body,
      remaining: headers.get('x-ratelimit-remaining'),
      wait: headers.get('retry-after'),
    };
  };
  expect(await send()).toMatchObject({ status: 200, remaining: '5', wait: null });
  const { body, ...denied } = await send();
  expectMcpErrorBody(body, 'rate_limit_exceeded');
  expect(denied).toEqual({ status: 429, remaining: '4', wait: expect.stringMatching(/^[1-9]\d*$/) });
});

test('the document follows from the definitions', () => {
  const { findOperation, document } = createChecker([echoes]);
  expect(Object.keys(findOperation('replace').responses)).toEqual(
    '200 400 401 403 404 405 413 415 429 500 501 503'.split(' '),
  );
  expect(Object.keys(findOperation('remove').responses)).toEqual(
    '204 400 401 403 404 405 429 500 501 503'.split(' '),
  );
  expect(findOperation('ping').responses['204']).not.toHaveProperty('content');
  expect(Object.keys(document.components.schemas)).toContain('ReplaceBody');
});

test('a parameter that neither a path nor a query can carry is reported at the start', () => {
  const names = z.object({ names: z.array(z.string()) });
  const find = procedure
    .meta(describe('GET', '/x'))
    .input(names)
    .output(echo)
    .query(() => ({}));
  const router = createRouter([{ ...echoes, procedures: { find } }]);
  expect(() => listOperations(router)).toThrow('find: names is an array');
  const either = z.object({ id: z.union([integer(0, 9), z.literal('last')]) });
  const show = procedure
    .meta(describe('GET', '/x/{id}'))
    .input(either)
    .output(echo)
    .query(() => ({}));
  expect(() => listOperations(createRouter([{ ...echoes, procedures: { show } }]))).toThrow(
    'show: id is a union, which neither a path nor a query can carry: declare one parameter for each value',
  );
});
