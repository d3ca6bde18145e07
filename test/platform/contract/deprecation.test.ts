import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { oldToolCall, toolCall } from '../../support/mcp.js';
import {
  type Caller,
  createCaller,
  PUBLIC_URL,
  post,
  rpcPath,
  startService,
  type TestService,
} from '../../support/test-service.js';

const REMOVAL = Date.parse('2030-12-05T00:00:00Z');
let now: number;
let service: TestService;
let call: Caller;
let id: number;

beforeAll(async () => {
  service = await startService({ now: () => now });
  call = createCaller(service);
  now = REMOVAL - 1;
  id = (await call('/v1/pets', post({ name: 'Rex', categoryId: 1 }))).body.id;
});
afterAll(() => service.close());
beforeEach(() => {
  now = REMOVAL - 1;
});

test('until its removal every response of getPet says that it is deprecated, over all protocols', async () => {
  const calls: [number, string, Parameters<Caller>[1]?][] = [
    [200, `/v1/pets/${id}`],
    [404, '/v1/pets/999999'],
    [404, '/v1/pets/x'],
    [404, '/v1/pets/1%0A'],
    [404, '/v1/pets/%0D%E2%80%A8'],
    [401, `/v1/pets/${id}`, { key: null }],
    [200, `/v1/pets/${id}`, { method: 'HEAD' }],
    [200, rpcPath('getPet', { petId: id })],
    [400, rpcPath('getPet', { petId: 'x' })],
    [404, rpcPath('getPet', { petId: 999999 })],
    [401, rpcPath('getPet', { petId: id }), { key: null }],
    [207, '/trpc/listPets,getPet?batch=1'],
    [200, '/mcp', toolCall('getPet', { petId: id })],
    [200, '/mcp', toolCall('getPet', {})],
    [200, '/mcp', oldToolCall('getPet', { petId: id })],
    [401, '/mcp', { ...toolCall('getPet', { petId: id }), key: null }],
  ];
  for (const [status, path, init] of calls) {
    const response = await call(path, init);
    expect([path, response.status]).toEqual([path, status]);
    expect(response.headers.get('deprecation')).toBe('@1764892800');
    expect(response.headers.get('sunset')).toBe('Thu, 05 Dec 2030 00:00:00 GMT');
    const policy = `<${PUBLIC_URL}/docs#description/how-an-operation-is-removed>`;
    expect(response.headers.get('link')?.split(', ')).toEqual([
      `<${PUBLIC_URL}/v1/pets>; rel="successor-version"`,
      `${policy}; rel="deprecation"; type="text/html"`,
      `${policy}; rel="sunset"; type="text/html"`,
    ]);
  }
});

test('a path with line breaks is one of getPet: 403 without its scope, 405 for other methods', async () => {
  const { key } = await service.keys.create({
    name: 'narrow',
    plan: 'free',
    perMinute: null,
    perDay: null,
    scopes: ['orders:read'],
    expiresAt: null,
  });
  const { status, headers } = await call('/v1/pets/1%0A', { key });
  expect([status, headers.get('deprecation')]).toEqual([403, '@1764892800']);
  const other = await call('/v1/pets/1%0A', { method: 'PROPFIND' });
  expect([other.status, other.headers.get('allow')]).toEqual([405, expect.stringMatching(/^GET, .*HEAD$/)]);
});

test('from the instant of its removal getPet is a 410 over all protocols, whatever its input', async () => {
  for (const moment of [REMOVAL, REMOVAL + 1, REMOVAL + 365 * 86_400_000]) {
    now = moment;
    for (const path of [
      `/v1/pets/${id}`,
      '/v1/pets/999999',
      '/v1/pets/x',
      rpcPath('getPet', { petId: id }),
      rpcPath('getPet', {}),
    ]) {
      const { status, body, headers } = await call(path);
      const error = path.startsWith('/trpc') ? body.error.data.error : body;
      expect([path, status, error.code, error.status]).toEqual([path, 410, 'operation_removed', 410]);
      for (const name of ['deprecation', 'sunset', 'link']) expect(headers.get(name)).toBeNull();
    }
    for (const toCall of [toolCall, oldToolCall]) {
      const { headers, body } = await call('/mcp', toCall('getPet', { petId: id }));
      expect(body.result.structuredContent).toMatchObject({ code: 'operation_removed', status: 410 });
      for (const name of ['deprecation', 'sunset', 'link']) expect(headers.get(name)).toBeNull();
    }
    expect((await call(`/v1/pets/${id}`, { key: null })).status).toBe(401);
  }
});

test('no other operation is deprecated or removed', async () => {
  for (const moment of [REMOVAL - 1, REMOVAL]) {
    now = moment;
    for (const path of ['/v1/pets', '/v1/store/orders', '/trpc/listPets', '/trpc/listOrders']) {
      const { status, headers } = await call(path);
      expect([path, status, headers.get('deprecation'), headers.get('sunset')]).toEqual([
        path,
        200,
        null,
        null,
      ]);
    }
    expect(
      (await call('/v1/pets', post({ name: 'Rex', categoryId: 1 }))).headers.get('deprecation'),
    ).toBeNull();
  }
});
