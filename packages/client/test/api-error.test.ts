import { afterAll, beforeAll, expect, expectTypeOf, test } from 'vitest';
import { failConnection, interceptFetch, respondAsProxy } from '../../../test/support/intercepted-fetch.js';
import { startService, type TestService } from '../../../test/support/test-service.js';
import {
  type ClientOptions,
  createClient,
  type FieldErrors,
  isApiError,
  type Scope,
} from '../src/create-client.js';

let service: TestService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

function connect(options: Partial<ClientOptions> = {}) {
  return { client: createClient({ baseUrl: service.url, apiKey: service.key, ...options }) };
}

test('isApiError recognizes an error of the service, whatever its status, and gives its code', async () => {
  const { client } = connect();
  const oneRequest = await service.keys.create({
    name: 'one request',
    plan: 'enterprise',
    perMinute: 1,
    perDay: 10,
    expiresAt: null,
  });
  const limited = connect({ apiKey: oneRequest.key }).client;
  await limited.listPets.query();
  const readOnlyKey = await service.keys.create({
    name: 'read-only',
    scopes: ['pets:read'],
    plan: 'free',
    perMinute: null,
    perDay: null,
    expiresAt: null,
  });
  const readOnly = connect({ apiKey: readOnlyKey.key }).client;
  const lacking = (scope: Scope) => ({ code: 'insufficient_scope', status: 403, scope });
  const failures: [() => Promise<unknown>, object][] = [
    [() => client.getPet.query({ petId: 0 }), { code: 'not_found', status: 404 }],
    [() => client.createPet.mutate({ name: '', categoryId: 1 }), { code: 'invalid_request', status: 400 }],
    [() => readOnly.createPet.mutate({ name: 'Miso', categoryId: 2 }), lacking('pets:write')],
    [() => readOnly.listOrders.query(), lacking('orders:read')],
    [() => connect({ apiKey: 'nonsense' }).client.listPets.query(), { code: 'invalid_api_key', status: 401 }],
    [
      () => limited.listPets.query(),
      { code: 'rate_limit_exceeded', status: 429, retryAfterSeconds: expect.any(Number) },
    ],
  ];
  for (const [call, expected] of failures) {
    const failure = await call().catch((error: unknown) => error);
    if (!isApiError(failure)) throw failure;
    expect(failure).toMatchObject(expected);
    expectTypeOf(failure.scope).toEqualTypeOf<Scope | undefined>();
    expect(failure.message).toBe(failure.data?.error.message);
    const response = failure.meta?.response as Response | undefined;
    expect(failure.requestId).toMatch(/^[0-9a-f-]{36}$/);
    expect(response?.headers.get('x-request-id')).toBe(failure.requestId);
  }
});

test('fields names what is wrong with each invalid field, and is undefined for other errors', async () => {
  const { client } = connect();
  const invalid = { name: '🐕'.repeat(201), categoryId: 1.5 };
  const failures = [
    () => client.createPet.mutate(invalid),
    () => client.listPets.query({ limit: 0 }),
    () => client.getPet.query({ petId: 0 }),
    () => connect({ apiKey: 'nonsense' }).client.createPet.mutate(invalid),
  ];
  const found: unknown[] = [];
  for (const call of failures) {
    const failure = await call().catch((error: unknown) => error);
    if (!isApiError(failure)) throw failure;
    expectTypeOf(failure.fields).toEqualTypeOf<FieldErrors | undefined>();
    found.push(failure.fields);
  }
  expect(found).toEqual([
    {
      name: 'must have 1 to 200 characters',
      categoryId: 'must be an integer from -9007199254740991 to 9007199254740991',
    },
    { limit: 'must be an integer from 1 to 100' },
    undefined,
    undefined,
  ]);
});

test('isApiError rejects network errors, responses of a proxy, and anything else', async () => {
  for (const intercept of [failConnection, respondAsProxy(502), respondAsProxy(404)]) {
    const { client } = connect({ fetch: interceptFetch(intercept).fetch, retry: { attempts: 1 } });
    const failure = await client.listPets.query().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(Error);
    expect(isApiError(failure)).toBe(false);
  }
  for (const other of [new Error('no'), undefined, { code: 'not_found' }])
    expect(isApiError(other)).toBe(false);
});
