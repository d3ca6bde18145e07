import {
  oldToolCall,
  patient,
  post,
  type TestResponse,
  toolCall,
  until,
} from '@animal-store/platform/testing';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  create,
  definition,
  INSERT_OTHERS,
  list,
  newItem,
  REUSE_EXAMPLES,
  resources,
  TABLE,
} from '#operations-under-test';
import type { ErrorShape } from '../../src/errors/api-error.js';
import {
  bodyOf,
  callRpc,
  existingPath,
  fillPath,
  ordinaryInit,
  readPathParameters,
  requiredParameters,
  requiredQuery,
} from '../support/document-requests.js';
import { createChecker, type ListedOperation } from '../support/openapi-checker.js';
import { useService } from '../support/test-service.js';

/** Those that need a scope. */
const operations = createChecker(resources).operations.filter(scopeOf);

/** A key for each set of scopes, by their names. */
const keys = new Map<string, string>();

const ENTERPRISE = { plan: 'enterprise', perMinute: 1_000_000, perDay: 1_000_000, expiresAt: null } as const;
const name = (scopes: readonly string[]) => scopes.join(',');
const COMBINATIONS = [
  ...definition.scopes.map((scope) => [scope]),
  ...definition.scopes.map(without),
  definition.scopes,
];

function without(lacked: string): string[] {
  return definition.scopes.filter((scope) => scope !== lacked);
}

const { call: send, service } = useService();
const call = patient(send);

beforeAll(async () => {
  await service.items.create(create.body);
  await service.database.pool.query(INSERT_OTHERS);
  for (const scopes of COMBINATIONS) {
    // Of one owner, so that each key finds what another one has created
    const choice = { name: name(scopes), owner: 'Scoped', scopes, ...ENTERPRISE };
    const { key, apiKey } = await service.keys.create(choice);
    expect(apiKey.scopes).toEqual(scopes);
    keys.set(name(scopes), key);
  }
});

/** A request for an operation: its input is valid, or not. */
interface Sample {
  /** Over REST */
  readonly path: string;
  readonly init: RequestInit;
  /** Over tRPC */
  readonly input: unknown;
  /** Of the tool */
  readonly arguments: object;
}

const isMutation = ({ method }: ListedOperation) => method !== 'GET';

function scopeOf({ security }: ListedOperation): string {
  return security.flatMap(Object.values).flat()[0];
}

/** The ordinary request of the document, for an item that exists. */
async function validSample(operation: ListedOperation): Promise<Sample> {
  await service.database.pool.query(REUSE_EXAMPLES);
  const path = await existingPath(operations, operation, (created, init) =>
    call(created, { ...init, key: keys.get(name(definition.scopes)) ?? '' }),
  );
  const body = bodyOf(operation) as object | undefined;
  const input = { ...readPathParameters(operation, path), ...requiredParameters(operation), ...body };
  const query = requiredQuery(operation);
  return { path: `/v1${path}${query}`, init: ordinaryInit(operation), input, arguments: input };
}

/** No operation takes a list as its input. Over REST, a parameter or a body is wrong. */
function invalidSample(operation: ListedOperation): Sample {
  const { method, parameters = [], requestBody } = operation;
  const [query] = parameters.filter((parameter) => parameter.in === 'query');
  const twice = query ? `?${query.name}=1&${query.name}=1` : '';
  return {
    path: `/v1${fillPath(operation, 'none')}${twice}`,
    init: requestBody === undefined ? { method } : { ...post('[]'), method },
    input: [],
    arguments: Object.fromEntries(parameters.map((parameter) => [parameter.name, []])),
  };
}

interface Outcome {
  readonly status: number;
  readonly code: string | undefined;
  readonly challenge: string | null;
  /** Over tRPC, and in the result of a tool */
  readonly scope?: string | undefined;
}

const toOutcome = (status: number, { headers }: TestResponse, error?: ErrorShape): Outcome => ({
  status,
  code: error?.data.error.code,
  challenge: headers.get('www-authenticate'),
  scope: error?.data.scope,
});

type Run = (operation: ListedOperation, key: string, sample: Sample) => Promise<Outcome>;

/** A busy machine may answer with a 503, also as the result of a tool, which says nothing about scopes. */
const runServed = (run: Run, ...call: Parameters<Run>): Promise<Outcome> =>
  until(async () => {
    const outcome = await run(...call);
    return outcome.status === 503 ? undefined : outcome;
  });

/** Every way to call an operation. The outcome's status is that of the call, over every protocol. */
const PROTOCOLS: Readonly<Record<string, Run>> = {
  async REST(_operation, key, { path, init }) {
    const { status, body, headers } = await call(path, { ...init, key });
    return { status, code: body?.code, challenge: headers.get('www-authenticate') };
  },
  async tRPC(operation, key, { input }) {
    const response = await callRpc(call, operation, input, { key });
    return toOutcome(response.status, response, response.body.error);
  },
  async 'a tRPC batch of one'(operation, key, { input }) {
    const response = await callBatch([operation.operationId], isMutation(operation), [input], key);
    return toOutcome(response.status, response, response.body[0].error);
  },
  async 'MCP of 2026-07-28'({ operationId }, key, sample) {
    const { status, body, headers } = await call('/mcp', { ...toolCall(operationId, sample.arguments), key });
    return { status, code: body?.code, challenge: headers.get('www-authenticate') };
  },
  async 'MCP of 2025-11-25'({ operationId }, key, sample) {
    const { body, headers } = await call('/mcp', { ...oldToolCall(operationId, sample.arguments), key });
    const { code, status = 200, scope } = body.result.isError ? body.result.structuredContent : {};
    return { status, code, challenge: headers.get('www-authenticate'), scope };
  },
};
/** Those whose error has no place for the scope but its challenge. */
const WITHOUT_SCOPE = ['REST', 'MCP of 2026-07-28'];

function callBatch(names: readonly string[], isMutation: boolean, inputs: readonly unknown[], key: string) {
  const path = `/trpc/${names.join(',')}?batch=1`;
  if (isMutation) return call(path, { ...post({ ...inputs }), key });
  return call(`${path}&input=${encodeURIComponent(JSON.stringify({ ...inputs }))}`, { key });
}

/** A key that has no other scope opens an operation, so it needs no more; one that has all others does not. */
const CASES = operations.flatMap((operation) =>
  Object.keys(PROTOCOLS).map((protocol) => {
    const scope = scopeOf(operation);
    return { operation, name: operation.operationId, protocol, scope };
  }),
);

test.each(CASES.map((each) => ({ ...each, scopes: [each.scope] })))(
  '$name over $protocol is open to a key with $scopes',
  async ({ operation, protocol, scopes }) => {
    const run = PROTOCOLS[protocol] as Run;
    const outcome = await runServed(
      run,
      operation,
      keys.get(name(scopes)) ?? '',
      await validSample(operation),
    );
    const success = Object.keys(operation.responses).find((status) => status.startsWith('2'));
    expect(outcome).toMatchObject({ status: protocol === 'REST' ? Number(success) : 200, code: undefined });
    expect(outcome.challenge).toBeNull();
  },
);

test.each(CASES.map((each) => ({ ...each, scopes: without(each.scope) })))(
  '$name over $protocol is closed to a key with $scopes, whatever the input',
  async ({ operation, protocol, scopes, scope }) => {
    const run = PROTOCOLS[protocol] as Run;
    for (const sample of [await validSample(operation), invalidSample(operation)]) {
      expect(await runServed(run, operation, keys.get(name(scopes)) ?? '', sample)).toEqual({
        status: 403,
        code: 'insufficient_scope',
        challenge: `Bearer error="insufficient_scope", scope="${scope}"`,
        ...(WITHOUT_SCOPE.includes(protocol) ? {} : { scope }),
      });
    }
  },
);

describe('within a batch, the scope is each call’s own', () => {
  const queries = operations.filter((operation) => !isMutation(operation));
  const names = queries.map(({ operationId }) => operationId);
  const needed = [...new Set(queries.map(scopeOf))];
  const readInputs = async () => {
    const inputs: unknown[] = [];
    // One after the other: statements that update the same rows in different orders would end in a deadlock.
    for (const operation of queries) inputs.push((await validSample(operation)).input);
    return inputs;
  };
  const expected = (scopes: readonly string[]) =>
    queries.map((operation) => {
      const scope = scopeOf(operation);
      const { operationId } = operation;
      return scopes.includes(scope)
        ? undefined
        : ['FORBIDDEN', 'insufficient_scope', 403, scope, operationId];
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
    const { status, body } = await callBatch(names, false, await readInputs(), keys.get(name(scopes)) ?? '');
    expect(body.map(({ error }: { error?: ErrorShape }) => describeError(error))).toEqual(expected(scopes));
    const denied = expected(scopes).filter((error) => error !== undefined).length;
    expect(status).toBe(denied === 0 ? 200 : denied === queries.length ? 403 : 207);
  });

  test.each(COMBINATIONS.map((scopes) => ({ scopes })))(
    'and in a stream, with $scopes',
    async ({ scopes }) => {
      const response = await fetch(
        `${service.url}/trpc/${names}?batch=1&input=${encodeURIComponent(JSON.stringify({ ...(await readInputs()) }))}`,
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
      for (const scope of needed)
        expect(text.includes(`"scope":"${scope}"`)).toBe(
          !(scopes as readonly string[]).includes(String(scope)),
        );
    },
  );

  test('and creates do not run', async () => {
    const count = async () =>
      (await service.database.pool.query(`SELECT count(*)::int FROM ${TABLE}`)).rows[0].count;
    const before = await count();
    const { status, body } = await callBatch(
      [create.name, create.name],
      true,
      [newItem('A'), {}],
      keys.get(list.scope) ?? '',
    );
    expect(status).toBe(403);
    for (const { error } of body) expect(error.data.error.code).toBe('insufficient_scope');
    expect(await count()).toBe(before);
  });
});

test('a key without the scope learns nothing about the media type, the size or the syntax of a body', async () => {
  const key = keys.get(list.scope) ?? '';
  const { headers } = toolCall(create.name);
  for (const init of [post('{'), post('x'.repeat(70_000)), post('{}', { 'content-type': 'text/plain' })]) {
    const named = {
      ...(init.headers as object),
      ...(headers as object),
      'content-type': new Headers(init.headers).get('content-type') ?? '',
    };
    expect((await call('/mcp', { ...init, headers: named, key })).status).toBe(403);
  }
  for (const init of [
    post('{'),
    post('x'.repeat(70_000)),
    post('{}', { 'content-type': 'text/plain' }),
    post('{}', { 'idempotency-key': 'with space' }),
  ]) {
    for (const path of [create.path, create.trpc])
      expect([path, (await call(path, { ...init, key })).status]).toEqual([path, 403]);
  }
});

test('neither the route nor the key nor the limit is told apart by scopes', async () => {
  const key = keys.get(list.scope) ?? '';
  expect((await call('/v1/nope', { key })).status).toBe(404);
  expect((await call(list.path, { method: 'PROPFIND', key })).status).toBe(405);
  expect((await call('/trpc/nope', { key })).status).toBe(404);
  expect((await call(create.path, { ...post({}), key: null })).status).toBe(401);
  expect((await call(list.path, { method: 'HEAD', key: keys.get(create.scope) ?? '' })).status).toBe(403);
});

test('a denied request counts as admitted, and over the limit it is a 429', async () => {
  const limits = { ...ENTERPRISE, perMinute: 3 };
  const { key } = await service.keys.create({ name: 'counted', scopes: [list.scope], ...limits });
  const creating = { ...post(newItem('Scoped')), key };
  const outcomes = [];
  for (const path of [create.path, create.trpc, `${create.trpc}?batch=1`, create.path]) {
    const { status, headers } = await call(path, creating);
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
  const creating = { ...post(newItem('Scoped'), { 'idempotency-key': 'one' }), key };
  expect((await call(create.path, creating)).status).toBe(201);
  expect(await service.keys.setScopesAll([apiKey.id], [list.scope])).toMatchObject([
    { scopes: [list.scope] },
  ]);
  await expect.poll(async () => (await call(create.path, creating)).status).toBe(403);
});
