import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SCOPES, type Scope } from '../../src/contract/scopes.js';
import type { ErrorCode, ErrorShape } from '../../src/errors/api-error.js';
import { appRouter } from '../../src/router.js';
import {
  type Caller,
  createCaller,
  post,
  rpcPath,
  startService,
  type TestResponse,
  type TestService,
} from '../support/test-service.js';

let service: TestService;
let call: Caller;
/** A key for each set of scopes, by their names. */
const keys = new Map<string, string>();

const ENTERPRISE = { plan: 'enterprise', perMinute: 1_000_000, perDay: 1_000_000, expiresAt: null } as const;
const name = (scopes: readonly Scope[]) => scopes.join(',');
const COMBINATIONS = [...SCOPES.map((scope) => [scope]), ...SCOPES.map(without), SCOPES];

function without(lacked: Scope): Scope[] {
  return SCOPES.filter((scope) => scope !== lacked);
}

beforeAll(async () => {
  service = await startService();
  call = createCaller(service);
  await service.pets.create({ name: 'Rex', categoryId: 1, status: 'available' });
  for (const scopes of COMBINATIONS) {
    const { key, apiKey } = await service.keys.create({ name: name(scopes), scopes, ...ENTERPRISE });
    expect(apiKey.scopes).toEqual(scopes);
    keys.set(name(scopes), key);
  }
});
afterAll(() => service.close());

interface Operation {
  readonly scope: Scope;
  readonly rest: string;
  readonly isMutation?: true;
  readonly input: object;
  readonly invalidInput: object;
  /** The path over REST of a request whose input is invalid */
  readonly invalidRest: string;
  readonly success?: number;
}

/** The scope of every operation, and requests with valid and with invalid input. */
const OPERATIONS: Readonly<Record<string, Operation>> = {
  listPets: {
    scope: 'pets:read',
    rest: '/v1/pets?limit=1',
    input: { limit: 1 },
    invalidRest: '/v1/pets?limit=0',
    invalidInput: { limit: 0 },
  },
  createPet: {
    scope: 'pets:write',
    isMutation: true,
    rest: '/v1/pets',
    input: { name: 'Miso', categoryId: 2 },
    invalidRest: '/v1/pets',
    invalidInput: {},
    success: 201,
  },
  getPet: {
    scope: 'pets:read',
    rest: '/v1/pets/1',
    input: { petId: 1 },
    invalidRest: '/v1/pets/none',
    invalidInput: { petId: 'none' },
  },
  listOrders: {
    scope: 'orders:read',
    rest: '/v1/store/orders?limit=1',
    input: { limit: 1 },
    invalidRest: '/v1/store/orders?limit=0',
    invalidInput: { limit: 0 },
  },
};

interface Outcome {
  readonly status: number;
  readonly code: ErrorCode | undefined;
  readonly challenge: string | null;
  /** Over tRPC only */
  readonly scope?: Scope | undefined;
}

const toOutcome = (status: number, { headers }: TestResponse, error?: ErrorShape): Outcome => ({
  status,
  code: error?.data.error.code,
  challenge: headers.get('www-authenticate'),
  scope: error?.data.scope,
});

type Run = (operation: string, key: string, isValid: boolean) => Promise<Outcome>;

/** Every way to call an operation. The outcome's status is that of the call, over every protocol. */
const PROTOCOLS: Readonly<Record<string, Run>> = {
  async REST(operation, key, isValid) {
    const { rest, invalidRest, isMutation, input, invalidInput } = describeOperation(operation);
    const init = isMutation ? post(isValid ? input : invalidInput) : {};
    const response = await call(isValid ? rest : invalidRest, { ...init, key });
    const { status, body, headers } = response;
    return { status, code: body.code, challenge: headers.get('www-authenticate') };
  },
  async tRPC(operation, key, isValid) {
    const { input, invalidInput, isMutation } = describeOperation(operation);
    const response = await callRpc(operation, isMutation, isValid ? input : invalidInput, key);
    return toOutcome(response.status, response, response.body.error);
  },
  async 'a tRPC batch of one'(operation, key, isValid) {
    const { input, invalidInput, isMutation } = describeOperation(operation);
    const response = await callBatch([operation], isMutation, [isValid ? input : invalidInput], key);
    return toOutcome(response.status, response, response.body[0].error);
  },
};

function describeOperation(operation: string): Operation {
  const described = OPERATIONS[operation];
  if (described === undefined) throw new Error(`${operation} is missing in this test`);
  return described;
}

function callRpc(operation: string, isMutation: true | undefined, input: unknown, key: string) {
  if (isMutation) return call(`/trpc/${operation}`, { ...post(input), key });
  return call(rpcPath(operation, input), { key });
}

function callBatch(
  operations: readonly string[],
  isMutation: true | undefined,
  inputs: readonly unknown[],
  key: string,
  headers: Record<string, string> = {},
) {
  const path = `/trpc/${operations.join(',')}?batch=1`;
  if (isMutation) return call(path, { ...post({ ...inputs }, headers), key });
  return call(`${path}&input=${encodeURIComponent(JSON.stringify({ ...inputs }))}`, { key, headers });
}

test('this table has every operation', () => {
  expect(Object.keys(OPERATIONS)).toEqual(Object.keys(appRouter._def.procedures));
});

const CASES = Object.entries(OPERATIONS).flatMap(([operation, { scope }]) =>
  Object.keys(PROTOCOLS).flatMap((protocol) =>
    COMBINATIONS.map((scopes) => ({ operation, protocol, scopes, scope })),
  ),
);

test.each(CASES.filter(({ scopes, scope }) => scopes.includes(scope)))(
  '$operation over $protocol is open to a key with $scopes',
  async ({ operation, protocol, scopes }) => {
    const run = PROTOCOLS[protocol] as Run;
    const { success = 200 } = describeOperation(operation);
    const outcome = await run(operation, keys.get(name(scopes)) ?? '', true);
    expect(outcome).toMatchObject({ status: protocol === 'REST' ? success : 200, code: undefined });
    expect(outcome.challenge).toBeNull();
  },
);

test.each(CASES.filter(({ scopes, scope }) => !scopes.includes(scope)))(
  '$operation over $protocol is closed to a key with $scopes, whatever the input',
  async ({ operation, protocol, scopes, scope }) => {
    const run = PROTOCOLS[protocol] as Run;
    for (const isValid of [true, false]) {
      expect(await run(operation, keys.get(name(scopes)) ?? '', isValid)).toEqual({
        status: 403,
        code: 'insufficient_scope',
        challenge: `Bearer error="insufficient_scope", scope="${scope}"`,
        ...(protocol === 'REST' ? {} : { scope }),
      });
    }
  },
);

describe('within a batch, the scope is each call’s own', () => {
  const QUERIES = ['listPets', 'listOrders', 'getPet'] as const;
  const inputs = QUERIES.map((operation) => describeOperation(operation).input);
  const expected = (scopes: readonly Scope[]) =>
    QUERIES.map((operation) => {
      const { scope } = describeOperation(operation);
      return scopes.includes(scope) ? undefined : ['FORBIDDEN', 'insufficient_scope', 403, scope, operation];
    });
  const describeError = (error: ErrorShape | undefined) =>
    error && [
      error.data.code,
      error.data.error.code,
      error.data.httpStatus,
      error.data.scope,
      error.data.path,
    ];

  test.each(COMBINATIONS.map((scopes) => ({ scopes })))('for a key with $scopes', async ({ scopes }) => {
    const { status, body } = await callBatch(QUERIES, undefined, inputs, keys.get(name(scopes)) ?? '');
    expect(body.map(({ error }: { error?: ErrorShape }) => describeError(error))).toEqual(expected(scopes));
    const denied = expected(scopes).filter((error) => error !== undefined).length;
    expect(status).toBe(denied === 0 ? 200 : denied === QUERIES.length ? 403 : 207);
  });

  test.each(COMBINATIONS.map((scopes) => ({ scopes })))(
    'and in a stream, with $scopes',
    async ({ scopes }) => {
      const response = await fetch(
        `${service.url}/trpc/${QUERIES}?batch=1&input=${encodeURIComponent(JSON.stringify({ ...inputs }))}`,
        {
          headers: {
            authorization: `Bearer ${keys.get(name(scopes))}`,
            'trpc-accept': 'application/jsonl',
          },
        },
      );
      const text = await response.text();
      expect(response.status).toBe(200);
      expect(text.match(/"code":"insufficient_scope"/g)?.length ?? 0).toBe(
        expected(scopes).filter((error) => error !== undefined).length,
      );
      for (const scope of SCOPES.filter((each) => each !== 'pets:write'))
        expect(text.includes(`"scope":"${scope}"`)).toBe(!scopes.includes(scope));
    },
  );

  test('and creates do not run', async () => {
    const count = async () =>
      (await service.database.pool.query('SELECT count(*)::int FROM pets')).rows[0].count;
    const before = await count();
    const { status, body } = await callBatch(
      ['createPet', 'createPet'],
      true,
      [{ name: 'A', categoryId: 1 }, {}],
      keys.get('pets:read') ?? '',
    );
    expect(status).toBe(403);
    for (const { error } of body) expect(error.data.error.code).toBe('insufficient_scope');
    expect(await count()).toBe(before);
  });
});

test('a key without the scope learns nothing about the media type, the size or the syntax of a body', async () => {
  const key = keys.get('pets:read') ?? '';
  for (const init of [
    post('{'),
    post('x'.repeat(70_000)),
    post('{}', { 'content-type': 'text/plain' }),
    post('{}', { 'idempotency-key': 'with space' }),
  ]) {
    for (const path of ['/v1/pets', '/trpc/createPet'])
      expect([path, (await call(path, { ...init, key })).status]).toEqual([path, 403]);
  }
});

test('neither the route nor the key nor the limit is told apart by scopes', async () => {
  const key = keys.get('pets:read') ?? '';
  expect((await call('/v1/nope', { key })).status).toBe(404);
  expect((await call('/v1/pets', { method: 'PROPFIND', key })).status).toBe(405);
  expect((await call('/trpc/nope', { key })).status).toBe(404);
  expect((await call('/v1/pets', { ...post({}), key: null })).status).toBe(401);
  expect((await call('/v1/pets', { method: 'HEAD', key: keys.get('pets:write') ?? '' })).status).toBe(403);
});

test('a denied request counts as admitted, and over the limit it is a 429', async () => {
  const limits = { ...ENTERPRISE, perMinute: 3 };
  const { key } = await service.keys.create({ name: 'counted', scopes: ['pets:read'], ...limits });
  const create = { ...post({ name: 'Miso', categoryId: 2 }), key };
  const outcomes = [];
  for (const path of ['/v1/pets', '/trpc/createPet', '/trpc/createPet?batch=1', '/v1/pets']) {
    const { status, headers } = await call(path, create);
    outcomes.push([status, headers.get('x-ratelimit-remaining')]);
  }
  expect(outcomes).toEqual([
    [403, '2'],
    [403, '1'],
    [403, '0'],
    [429, '0'],
  ]);
});

test('a stored response is not repeated to a key that has lost the scope', async () => {
  const { key, apiKey } = await service.keys.create({ name: 'narrowed', ...ENTERPRISE });
  const create = { ...post({ name: 'Miso', categoryId: 2 }, { 'idempotency-key': 'one' }), key };
  expect((await call('/v1/pets', create)).status).toBe(201);
  expect(await service.keys.setScopes(apiKey.id, ['pets:read'])).toMatchObject({ scopes: ['pets:read'] });
  await expect.poll(async () => (await call('/v1/pets', create)).status, { timeout: 2_000 }).toBe(403);
});
