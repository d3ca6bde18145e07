import type { Client } from '@modelcontextprotocol/client';
import { afterEach, describe, expect, test } from 'vitest';
import { ApiError, type ErrorBody, type ErrorShape } from '../../../src/platform/errors/api-error.js';
import { toToolError } from '../../../src/platform/protocols/mcp/advice.js';
import { expectErrorBody } from '../../support/expect-error-body.js';
import { connectClient, MODE_NAMES, type Mode, toolCalls } from '../../support/mcp.js';
import { createChecker } from '../../support/openapi-checker.js';
import { resources } from '../../support/operations-under-test.js';
import {
  type Caller,
  createCaller,
  post,
  rpcPath,
  startService,
  type TestResponse,
  type TestService,
} from '../../support/test-service.js';

/** createPet bodies as JSON text, and the status of each over REST. */
const bodies: readonly (readonly [body: string, status: 201 | 400])[] = [
  ['{"name":"Rex","categoryId":1}', 201],
  ['{"name":"Rex","categoryId":1,"status":"sold"}', 201],
  ['{"name":"Rex","categoryId":1e2}', 201],
  ['{"name":"Rex","categoryId":1.0}', 201],
  ['{"name":"Rex","categoryId":-0}', 201],
  ['{"name":"Rex","categoryId":9007199254740991}', 201],
  ['{"name":"Rex","categoryId":-9007199254740991.0}', 201],
  ['{"name":"Rex","categoryId":1,"extra":{"deep":[1.5]}}', 201],
  // A number is the double that it denotes.
  ['{"name":"Rex","categoryId":9007199254740990.6}', 201],
  ['{"name":"Rex","categoryId":1.00000000000000000001}', 201],
  ['{"name":"Rex","categoryId":1e-400}', 201],
  [`{"name":"Rex","categoryId":1.${'0'.repeat(60_000)}1}`, 201],
  [`{"name":"${'x'.repeat(200)}","categoryId":1}`, 201],
  [`{"name":"${'🐈'.repeat(200)}","categoryId":1}`, 201],
  ['{"name":"Rex","categoryId":9007199254740992}', 400],
  ['{"name":"Rex","categoryId":-9007199254740993}', 400],
  ['{"name":"Rex","categoryId":9223372036854775807}', 400],
  ['{"name":"Rex","categoryId":9007199254740991.6}', 400],
  ['{"name":"Rex","categoryId":1e400}', 400],
  ['{"name":"Rex","categoryId":1.5}', 400],
  ['{"name":"Rex","categoryId":"3"}', 400],
  ['{"name":"Rex","categoryId":""}', 400],
  ['{"name":"Rex","categoryId":true}', 400],
  ['{"name":"Rex","categoryId":null}', 400],
  ['{"name":"Rex","categoryId":[]}', 400],
  ['{"name":"Rex","categoryId":[1]}', 400],
  ['{"name":"Rex","categoryId":{}}', 400],
  ['{"name":"Rex"}', 400],
  ['{"categoryId":1}', 400],
  ['{}', 400],
  ['{"name":"","categoryId":1}', 400],
  ['{"name":" \\t\\u00a0\\u2003\\u3000\\u0085","categoryId":1}', 400],
  ['{"name":"a\\u0000b","categoryId":1}', 400],
  ['{"name":"\\ud800","categoryId":1}', 400],
  ['{"name":"\\udc00\\ud800","categoryId":1}', 400],
  ['{"name":5,"categoryId":1}', 400],
  ['{"name":null,"categoryId":1}', 400],
  [`{"name":"${'x'.repeat(201)}","categoryId":1}`, 400],
  [`{"name":"${'🐈'.repeat(201)}","categoryId":1}`, 400],
  ['{"name":"Rex","categoryId":1,"status":"Sold"}', 400],
  ['{"name":"Rex","categoryId":1,"status":""}', 400],
  ['{"name":"Rex","categoryId":1,"status":null}', 400],
  ['{"name":"Rex","categoryId":1,"status":"constructor"}', 400],
  ['[]', 400],
  ['null', 400],
  ['"text"', 400],
  ['3', 400],
  ['{"name":"Rex","categoryId":1', 400],
  ['{"name":"Rex","categoryId":01}', 400],
  ['not json', 400],
];

/** The input of listPets as a query string and as JSON. */
const pages: readonly (readonly [query: string, input: unknown, status: 200 | 400])[] = [
  ['', undefined, 200],
  ['', {}, 200],
  ['limit=1', { limit: 1 }, 200],
  ['limit=100', { limit: 100 }, 200],
  ['limit=007', { limit: 7 }, 200],
  ['status=sold&cursor=-5', { status: 'sold', cursor: -5 }, 200],
  ['unknown=1&constructor=2&__proto__=3', { unknown: 1, constructor: 2 }, 200],
  ['limit=0', { limit: 0 }, 400],
  ['limit=101', { limit: 101 }, 400],
  ['limit=-1', { limit: -1 }, 400],
  ['limit=1.5', { limit: 1.5 }, 400],
  ['limit=', { limit: '' }, 400],
  ['limit=null', { limit: 'null' }, 400],
  ['limit=true', { limit: true }, 400],
  ['limit=0x10', { limit: '0x10' }, 400],
  ['limit=1e1', { limit: '1e1' }, 400],
  ['limit=1.0', { limit: '1.0' }, 400],
  ['cursor=1.0', { cursor: '1.0' }, 400],
  ['limit=%205', { limit: ' 5' }, 400],
  ['limit=+5', { limit: '+5' }, 400],
  ['limit=%D9%A5', { limit: '٥' }, 400],
  ['status=', { status: '' }, 400],
  ['status=SOLD', { status: 'SOLD' }, 400],
  ['status=toString', { status: 'toString' }, 400],
  ['cursor=9007199254740992', { cursor: 9007199254740992 }, 400],
  ['cursor=', { cursor: '' }, 400],
  ['cursor=x', { cursor: [] }, 400],
];

const { operations } = createChecker(resources);

let service: TestService;
let call: Caller;

afterEach(() => service.close());

/** The response over REST or tRPC, as REST sends it. */
function toRestBody({ status, body }: TestResponse): unknown {
  if (body.error !== undefined) {
    const { fields, ...data } = body.error.data;
    expect(Object.keys(data).sort()).toEqual(['code', 'error', 'httpStatus', 'path']);
    if (fields !== undefined)
      expect([data.error.code, toSentence(fields)]).toEqual(['invalid_request', data.error.message]);
    expect(body.error.message).toBe(body.error.data.error.message);
    expect(status).toBe(body.error.data.httpStatus);
    return body.error.data.error;
  }
  return withoutId(body.result === undefined ? body : body.result.data);
}

function toSentence(fields: Readonly<Record<string, string>>): string {
  const problems = Object.entries(fields).map(([name, problem]) => `${name} ${problem}`);
  return `${problems.join('; ')}.`;
}

function withoutId(output: unknown): unknown {
  if (typeof output !== 'object' || output === null || Array.isArray(output)) return output;
  const { id: _id, ...rest } = output as Record<string, unknown>;
  return rest;
}

/** Malformed JSON is called the body over REST, and the input over tRPC. */
function unifyMessages(response: unknown): unknown {
  return JSON.parse(
    JSON.stringify(response).replace('The body is not valid JSON', 'The input is not valid JSON'),
  );
}

/** What a call got: the status over HTTP, and the response as REST sends it. */
interface Outcome {
  readonly status: number;
  readonly body: unknown;
}

interface Protocol {
  /** The status of success */
  readonly created: 200 | 201;
  create(body: string): Promise<Outcome>;
  list(query: string, input: unknown): Promise<Outcome>;
}

const toOutcome = (response: TestResponse): Outcome => ({
  status: response.status,
  body: unifyMessages(toRestBody(response)),
});

const rest: Protocol = {
  created: 201,
  create: async (body) => toOutcome(await call('/v1/pets', post(body))),
  list: async (query) => toOutcome(await call(`/v1/pets?${query}`)),
};
const trpc: Protocol = {
  created: 200,
  create: async (body) => toOutcome(await call('/trpc/createPet', post(body))),
  list: async (_query, input) => toOutcome(await call(rpcPath('listPets', input))),
};

/** The result of a tool, whose error says in addition what to do. */
function fromToolResult(result: Awaited<ReturnType<Client['callTool']>>): Outcome {
  const { isError, structuredContent, content } = result;
  expect(content).toEqual([{ type: 'text', text: JSON.stringify(structuredContent) }]);
  if (isError !== true) {
    const { items, nextCursor, ...output } = structuredContent as Record<string, unknown>;
    if (items !== undefined) expect(nextCursor).toBeNull();
    return { status: 200, body: items ?? withoutId(output) };
  }
  const { fields, ...error } = structuredContent as ErrorBody & { fields?: Record<string, string> };
  const message = fields === undefined ? error.message : toSentence(fields);
  expect(error).toEqual(toToolError(new ApiError(error.code, { message }), true));
  return { status: error.status, body: { ...error, message } };
}

/** A call as bytes, in which a number can be written as it is over the other protocols. */
function tools(mode: Mode): Protocol {
  const send = async (name: string, args: string): Promise<Outcome> => {
    const init = toolCalls[mode](name, 'ARGUMENTS');
    const { body } = await call('/mcp', {
      ...init,
      body: String(init.body).replace('"ARGUMENTS"', () => args),
    });
    return body.error === undefined ? fromToolResult(body.result) : fromProtocolError(body.error.code, args);
  };
  return {
    created: 200,
    create: (body) => send('createPet', body),
    list: (_query, input = {}) => send('listPets', JSON.stringify(input)),
  };
}

/** The SDK's own client. It cannot send what is not JSON, nor a number that is none of JavaScript's. */
function sdkClient(mode: Mode): Protocol {
  let client: Promise<Client> | undefined;
  const send = async (name: string, args: string): Promise<Outcome> => {
    client ??= connectClient(service, mode);
    const sent = await client;
    try {
      return fromToolResult(await sent.callTool({ name, arguments: JSON.parse(args) }));
    } catch (error) {
      if (error instanceof SyntaxError) return fromProtocolError(-32_700, args);
      return fromProtocolError((error as { code?: number }).code, args);
    }
  };
  return {
    created: 200,
    create: (body) => send('createPet', body),
    list: (_query, input = {}) => send('listPets', JSON.stringify(input)),
  };
}

/** Where the others find that the input is no object, or no JSON, this protocol finds that the message is none of it. */
function fromProtocolError(code: number | undefined, args: string): Outcome {
  const isJson = args !== 'not json' && canParse(args);
  expect([args, code]).toEqual([args, isJson ? -32_602 : -32_700]);
  const message = isJson ? 'The input must be a JSON object.' : 'The input is not valid JSON.';
  return { status: 400, body: new ApiError('invalid_request', { message }).body };
}

function canParse(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const listProtocols = (): Protocol[] => [rest, trpc, ...MODE_NAMES.map(tools), ...MODE_NAMES.map(sdkClient)];

describe.each([
  ['REST first', (all: Protocol[]) => all],
  ['REST last', (all: Protocol[]) => all.toReversed()],
] as const)('%s', (_order, arrange) => {
  test('every body gets the same response over all protocols, whatever was called before', async () => {
    service = await startService();
    call = createCaller(service);
    const order = arrange(listProtocols());
    for (const [body, status] of bodies) {
      const outcomes: unknown[] = [];
      for (const protocol of order) {
        const outcome = await protocol.create(body);
        expect([body, outcome.status]).toEqual([body, status === 201 ? protocol.created : status]);
        outcomes.push(outcome.body);
      }
      for (const outcome of outcomes) expect(outcome).toEqual(outcomes[0]);
    }
  });

  test('every page gets the same response over all protocols, whatever was called before', async () => {
    service = await startService();
    call = createCaller(service);
    await call('/v1/pets', post({ name: 'Rex', categoryId: 1 }));
    const order = arrange(listProtocols());
    for (const [query, input, status] of pages) {
      const outcomes: unknown[] = [];
      for (const protocol of order) {
        const outcome = await protocol.list(query, input);
        expect([query, outcome.status]).toEqual([query, status]);
        outcomes.push(outcome.body);
      }
      for (const outcome of outcomes) expect(outcome).toEqual(outcomes[0]);
    }
  });
});

test.each(MODE_NAMES)(
  'every operation returns the same over all protocols, to a client of %s',
  async (mode) => {
    service = await startService();
    call = createCaller(service);
    const { id } = await service.pets.create({ name: 'Rex', categoryId: 1 });
    await service.database.pool.query('INSERT INTO orders (pet_id, quantity) VALUES ($1, 1)', [id]);
    const client = await connectClient(service, mode);
    /** What differs from call to call */
    const unify = (output: unknown) =>
      JSON.parse(
        JSON.stringify(output, (name, value) => (name === 'remaining' || name === 'usage' ? 0 : value)),
      );
    for (const { operationId, method, path, parameters = [] } of operations.filter(
      ({ method }) => method === 'GET',
    )) {
      const input = parameters.some((each) => each.in === 'path') ? { petId: id } : {};
      const overRest = await call(`/v1${path.replace('{petId}', String(id))}`, { method });
      const overRpc = await call(rpcPath(operationId, input));
      const { structuredContent } = await client.callTool({ name: operationId, arguments: input });
      const output = (structuredContent as { items?: unknown }).items ?? structuredContent;
      expect([operationId, overRest.status]).toEqual([operationId, 200]);
      expect(unify(overRpc.body.result.data)).toEqual(unify(overRest.body));
      expect(unify(output)).toEqual(unify(overRest.body));
    }
  },
);

test('the message names each offending field', async () => {
  service = await startService();
  call = createCaller(service);
  const { body } = await call('/v1/pets', post('{"name":"","status":7}'));
  expectErrorBody(
    body,
    'invalid_request',
    'name must have 1 to 200 characters; categoryId is required; status must be one of available, pending, sold.',
  );
});

test('a petId over tRPC and to a tool is strict JSON: anything but an integer within the bounds is a 400', async () => {
  service = await startService();
  call = createCaller(service);
  for (const petId of ['1', null, 1.5, true, [], {}, 2 ** 53]) {
    const { status, body } = await call(rpcPath('getPet', { petId }));
    expect([petId, status, body.error.data.error.code]).toEqual([petId, 400, 'invalid_request']);
    for (const toCall of Object.values(toolCalls)) {
      const { result } = (await call('/mcp', toCall('getPet', { petId }))).body;
      expect([petId, result.structuredContent.code]).toEqual([petId, 'invalid_request']);
    }
  }
  const { body } = await call(rpcPath('getPet', { petId: 12345 }));
  expectErrorBody(body.error.data.error, 'not_found', 'There is no pet with the id 12345.');
});

test('over tRPC field errors are data as well; over REST the body has its three members only', async () => {
  service = await startService();
  call = createCaller(service);
  const invalid = { name: ' ', categoryId: '3', status: 'lost' };
  const fields = {
    name: 'must not be white space only',
    categoryId: 'must be an integer from -9007199254740991 to 9007199254740991',
    status: 'must be one of available, pending, sold',
  };
  expectErrorBody((await call('/v1/pets', post(invalid))).body, 'invalid_request');
  expect((await call('/trpc/createPet', post(invalid))).body.error.data.fields).toEqual(fields);
  const batch = await call('/trpc/createPet,createPet?batch=1', post({ 0: invalid, 1: {} }));
  expect(batch.body.map(({ error }: { error: ErrorShape }) => error.data.fields)).toEqual([
    fields,
    { name: 'is required', categoryId: 'is required' },
  ]);
  const streamed = await fetch(`${service.url}/trpc/createPet?batch=1`, {
    ...post({ 0: invalid }, { authorization: `Bearer ${service.key}`, 'trpc-accept': 'application/jsonl' }),
  });
  expect(await streamed.text()).toContain(`"fields":${JSON.stringify(fields)}`);
});

test('errors that are not about fields have none', async () => {
  service = await startService();
  call = createCaller(service);
  const responses = [
    await call('/trpc/createPet', post('{')),
    await call('/trpc/createPet', post('[]')),
    await call('/trpc/createPet', post({ name: 'Rex', categoryId: 1 }, { 'idempotency-key': 'ü' })),
    await call(rpcPath('getPet', { petId: 12345 })),
    await call('/trpc/nope'),
    await call('/trpc/listPets', { key: null }),
  ];
  for (const { body } of responses) expect(body.error.data).not.toHaveProperty('fields');
});
