import {
  type ClientOptions,
  createClient,
  type FieldErrors,
  isApiError,
  type Scope,
} from '@animal-store/client';
import { expect, expectTypeOf, test } from 'vitest';
import { failConnection, interceptFetch, respondAsProxy } from '../../../test/support/intercepted-fetch.js';
import {
  create,
  list,
  newItem,
  newItemSchema,
  otherList,
  read,
} from '../../../test/support/operations-under-test.js';
import { useService } from '../../platform/test/support/test-service.js';

const { service } = useService();

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
  await limited[list.name].query();
  const readOnlyKey = await service.keys.create({
    name: 'read-only',
    scopes: [list.scope],
    plan: 'free',
    perMinute: null,
    perDay: null,
    expiresAt: null,
  });
  const readOnly = connect({ apiKey: readOnlyKey.key }).client;
  const lacking = (scope: Scope) => ({ code: 'insufficient_scope', status: 403, scope });
  const failures: [() => Promise<unknown>, object][] = [
    [() => client[read.name].query(read.inputOf(0)), { code: 'not_found', status: 404 }],
    [() => client[create.name].mutate(newItem('')), { code: 'invalid_request', status: 400 }],
    [() => readOnly[create.name].mutate(newItem('Miso')), lacking(create.scope as Scope)],
    [() => readOnly[otherList.name].query(otherList.input), lacking(otherList.scope as Scope)],
    [
      () => connect({ apiKey: 'nonsense' }).client[list.name].query(),
      { code: 'invalid_api_key', status: 401 },
    ],
    [
      () => limited[list.name].query(),
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
  // Longer than any text may be, and still a body that is read
  const invalid = newItem('🐕'.repeat(10_000), 1.5);
  const issues = newItemSchema.safeParse(invalid).error?.issues ?? [];
  expect(issues).not.toEqual([]);
  const failures = [
    () => client[create.name].mutate(invalid),
    () => client[list.name].query({ limit: 0 }),
    () => client[read.name].query(read.inputOf(0)),
    () => connect({ apiKey: 'nonsense' }).client[create.name].mutate(invalid),
  ];
  const found: unknown[] = [];
  for (const call of failures) {
    const failure = await call().catch((error: unknown) => error);
    if (!isApiError(failure)) throw failure;
    expectTypeOf(failure.fields).toEqualTypeOf<FieldErrors | undefined>();
    found.push(failure.fields);
  }
  expect(found).toEqual([
    Object.fromEntries(issues.map(({ path: [member = ''], message }) => [member, message])),
    { limit: 'must be an integer from 1 to 100' },
    undefined,
    undefined,
  ]);
});

test('isApiError rejects network errors, responses of a proxy, and anything else', async () => {
  for (const intercept of [failConnection, respondAsProxy(502), respondAsProxy(404)]) {
    const { client } = connect({ fetch: interceptFetch(intercept).fetch, retry: { attempts: 1 } });
    const failure = await client[list.name].query().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(Error);
    expect(isApiError(failure)).toBe(false);
  }
  for (const other of [new Error('no'), undefined, { code: 'not_found' }])
    expect(isApiError(other)).toBe(false);
});
