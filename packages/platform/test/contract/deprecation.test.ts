import { type Caller, oldToolCall, post, rpcPath, toolCall } from '@animal-store/platform/testing';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { create, list, otherList, resources } from '#operations-under-test';
import { deprecated } from '../support/deprecated.js';
import { REMOVAL } from '../support/deprecated-operation.js';
import { PUBLIC_URL, useService } from '../support/test-service.js';

let now: number;

const { call, service } = useService({ now: () => now, resources: [...resources, deprecated.resource] });

beforeAll(async () => {
  now = REMOVAL - 1;
});
beforeEach(() => {
  now = REMOVAL - 1;
});

test('until its removal every response says that it is deprecated, over all protocols', async () => {
  const calls: [number, string, Parameters<Caller>[1]?][] = [
    [200, deprecated.path],
    [404, deprecated.missingPath],
    [404, '/v1/old/x'],
    [404, `${deprecated.path}%0A`],
    [404, '/v1/old/%0D%E2%80%A8'],
    [401, deprecated.path, { key: null }],
    [200, deprecated.path, { method: 'HEAD' }],
    [200, rpcPath(deprecated.name, deprecated.input)],
    [400, rpcPath(deprecated.name, { oldId: 'x' })],
    [404, rpcPath(deprecated.name, deprecated.missingInput)],
    [401, rpcPath(deprecated.name, deprecated.input), { key: null }],
    [207, `${list.trpc},${deprecated.name}?batch=1`],
    [200, '/mcp', toolCall(deprecated.name, deprecated.input)],
    [200, '/mcp', toolCall(deprecated.name, {})],
    [200, '/mcp', oldToolCall(deprecated.name, deprecated.input)],
    [401, '/mcp', { ...toolCall(deprecated.name, deprecated.input), key: null }],
  ];
  for (const [status, path, init] of calls) {
    const response = await call(path, init);
    expect([path, response.status]).toEqual([path, status]);
    expect(response.headers.get('deprecation')).toBe('@1764892800');
    expect(response.headers.get('sunset')).toBe('Thu, 05 Dec 2030 00:00:00 GMT');
    const policy = `<${PUBLIC_URL}/docs#description/how-an-operation-is-removed>`;
    expect(response.headers.get('link')?.split(', ')).toEqual([
      `<${PUBLIC_URL}/v1/new>; rel="successor-version"`,
      `${policy}; rel="deprecation"; type="text/html"`,
      `${policy}; rel="sunset"; type="text/html"`,
    ]);
  }
});

test('a path with line breaks is one of the operation: 403 without its scope, 405 for other methods', async () => {
  const { key } = await service.keys.create({
    name: 'narrow',
    plan: 'free',
    perMinute: null,
    perDay: null,
    scopes: [otherList.scope],
    expiresAt: null,
  });
  const { status, headers } = await call(`${deprecated.path}%0A`, { key });
  expect([status, headers.get('deprecation')]).toEqual([403, '@1764892800']);
  const other = await call(`${deprecated.path}%0A`, { method: 'PROPFIND' });
  expect([other.status, other.headers.get('allow')]).toEqual([405, expect.stringMatching(/^GET, .*HEAD$/)]);
});

test('from the instant of its removal it is a 410 over all protocols, whatever its input', async () => {
  for (const moment of [REMOVAL, REMOVAL + 1, REMOVAL + 365 * 86_400_000]) {
    now = moment;
    for (const path of [
      deprecated.path,
      deprecated.missingPath,
      '/v1/old/x',
      rpcPath(deprecated.name, deprecated.input),
      rpcPath(deprecated.name, {}),
    ]) {
      const { status, body, headers } = await call(path);
      const error = path.startsWith('/trpc') ? body.error.data.error : body;
      expect([path, status, error.code, error.status]).toEqual([path, 410, 'operation_removed', 410]);
      for (const name of ['deprecation', 'sunset', 'link']) expect(headers.get(name)).toBeNull();
    }
    for (const toCall of [toolCall, oldToolCall]) {
      const { headers, body } = await call('/mcp', toCall(deprecated.name, deprecated.input));
      expect(body.result.structuredContent).toMatchObject({ code: 'operation_removed', status: 410 });
      for (const name of ['deprecation', 'sunset', 'link']) expect(headers.get(name)).toBeNull();
    }
    expect((await call(deprecated.path, { key: null })).status).toBe(401);
  }
});

test('no other operation is deprecated or removed', async () => {
  for (const moment of [REMOVAL - 1, REMOVAL]) {
    now = moment;
    for (const path of [list.path, otherList.path, list.trpc, otherList.trpc]) {
      const { status, headers } = await call(path);
      expect([path, status, headers.get('deprecation'), headers.get('sunset')]).toEqual([
        path,
        200,
        null,
        null,
      ]);
    }
    expect((await call(create.path, post(create.body))).headers.get('deprecation')).toBeNull();
  }
});
