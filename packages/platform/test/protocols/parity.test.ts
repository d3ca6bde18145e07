import { type Caller, createCaller, post, rpcPath, type TestResponse } from '@animal-store/platform/testing';
import type { Client } from '@modelcontextprotocol/client';
import { TRPCError } from '@trpc/server';
import { pino } from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { create, INSERT_OTHERS, list, read, resources } from '#operations-under-test';
import { ApiError, type ErrorBody, type ErrorShape } from '../../src/errors/api-error.js';
import { createProcedure, type OperationMeta } from '../../src/operations/builder.js';
import { assignedId, fieldError, INPUT_ERROR, int64, text } from '../../src/operations/input.js';
import { answerPage, pageInput, pageOutput } from '../../src/operations/pagination.js';
import type { Resource } from '../../src/operations/resource.js';
import { toToolError } from '../../src/protocols/mcp/advice.js';
import { errorOf } from '../support/error-table.js';
import { expectErrorBody } from '../support/expect-error-body.js';
import { connectClient, MODE_NAMES, type Mode, toolCalls } from '../support/mcp.js';
import { createChecker } from '../support/openapi-checker.js';
import { startService, type TestService } from '../support/test-service.js';

// A resource of its own, because the inputs below are about each kind of member that an operation can have.

const KINDS = ['first', 'second'] as const;
const kind = z.enum(KINDS, { error: fieldError(`must be one of ${KINDS.join(', ')}`) });
const newSample = z
  .object({ name: text(1, 200), number: int64(), kind: kind.default('first') }, { error: INPUT_ERROR })
  .meta({ id: 'NewSample' });
const sample = z
  .object({ id: assignedId(), name: text(1, 200), number: int64(), kind })
  .meta({ id: 'Sample', examples: [{ id: 1, name: 'One', number: 1, kind: 'first' }] });
type Sample = z.output<typeof sample>;

interface SampleStore {
  add(sample: z.output<typeof newSample>): Promise<Sample>;
  readFirst(): Promise<Sample[]>;
}
const procedure = createProcedure<{ readonly samples: SampleStore }>();
/** Adds to the context, so that tRPC's runner copies it. */
const owned = procedure.use(({ ctx, next }) => next({ ctx: { owner: ctx.apiKey.id } }));
const meta = { stability: 'beta', scope: 'any' } as const;
const listMeta = (path: `/${string}`): OperationMeta => ({
  ...meta,
  openapi: { method: 'GET', path, summary: 'List' },
});
const createMeta = (path: `/${string}`): OperationMeta => ({
  ...meta,
  openapi: { method: 'POST', path, summary: 'Add' },
  success: { status: 201, location: ({ id }: Sample) => `${path}/${id}` },
  idempotent: false,
});
const samples: Resource<SampleStore> = {
  name: 'samples',
  description: 'Samples',
  createStore() {
    const all: Sample[] = [];
    return {
      add: async (sample) => {
        all.push({ id: all.length + 1, ...sample });
        return all.at(-1) as Sample;
      },
      readFirst: async () => all.slice(0, 1),
    };
  },
  procedures: {
    listSamples: procedure
      .meta(listMeta('/samples'))
      .input(pageInput({ kind: kind.optional() }))
      .output(pageOutput(sample))
      .query(async ({ ctx, input }) => answerPage(ctx, input, await ctx.samples.readFirst())),
    createSample: procedure
      .meta(createMeta('/samples'))
      .input(newSample)
      .output(sample)
      .mutation(({ ctx, input }) => ctx.samples.add(input)),
    listOwned: owned
      .meta(listMeta('/owned'))
      .input(pageInput({ kind: kind.optional() }))
      .output(pageOutput(sample))
      .query(async ({ ctx, input }) => {
        expect(ctx.owner).toBe(ctx.apiKey.id);
        return answerPage(ctx, input, await ctx.samples.readFirst());
      }),
    createOwned: owned
      .meta(createMeta('/owned'))
      .input(newSample)
      .output(sample)
      .mutation(({ ctx, input }) => {
        expect(ctx.owner).toBe(ctx.apiKey.id);
        return ctx.samples.add(input);
      }),
  },
};

/** createSample bodies as JSON text, and the status of each over REST. */
const bodies: readonly (readonly [body: string, status: 201 | 400])[] = [
  ['{"name":"One","number":1}', 201],
  ['{"name":"One","number":1,"kind":"second"}', 201],
  ['{"name":"One","number":1e2}', 201],
  ['{"name":"One","number":1.0}', 201],
  ['{"name":"One","number":-0}', 201],
  ['{"name":"One","number":9007199254740991}', 201],
  ['{"name":"One","number":-9007199254740991.0}', 201],
  ['{"name":"One","number":1,"extra":{"deep":[1.5]}}', 201],
  // A number is the double that it denotes.
  ['{"name":"One","number":9007199254740990.6}', 201],
  ['{"name":"One","number":1.00000000000000000001}', 201],
  ['{"name":"One","number":1e-400}', 201],
  [`{"name":"One","number":1.${'0'.repeat(60_000)}1}`, 201],
  [`{"name":"${'x'.repeat(200)}","number":1}`, 201],
  [`{"name":"${'🐈'.repeat(200)}","number":1}`, 201],
  ['{"name":"One","number":9007199254740992}', 400],
  ['{"name":"One","number":-9007199254740993}', 400],
  ['{"name":"One","number":9223372036854775807}', 400],
  ['{"name":"One","number":9007199254740991.6}', 400],
  ['{"name":"One","number":1e400}', 400],
  ['{"name":"One","number":1.5}', 400],
  ['{"name":"One","number":"3"}', 400],
  ['{"name":"One","number":""}', 400],
  ['{"name":"One","number":true}', 400],
  ['{"name":"One","number":null}', 400],
  ['{"name":"One","number":[]}', 400],
  ['{"name":"One","number":[1]}', 400],
  ['{"name":"One","number":{}}', 400],
  ['{"name":"One"}', 400],
  ['{"number":1}', 400],
  ['{}', 400],
  ['{"name":"","number":1}', 400],
  ['{"name":" \\t\\u00a0\\u2003\\u3000\\u0085","number":1}', 400],
  ['{"name":"a\\u0000b","number":1}', 400],
  ['{"name":"\\ud800","number":1}', 400],
  ['{"name":"\\udc00\\ud800","number":1}', 400],
  ['{"name":5,"number":1}', 400],
  ['{"name":null,"number":1}', 400],
  [`{"name":"${'x'.repeat(201)}","number":1}`, 400],
  [`{"name":"${'🐈'.repeat(201)}","number":1}`, 400],
  ['{"name":"One","number":1,"kind":"Second"}', 400],
  ['{"name":"One","number":1,"kind":""}', 400],
  ['{"name":"One","number":1,"kind":null}', 400],
  ['{"name":"One","number":1,"kind":"constructor"}', 400],
  ['[]', 400],
  ['null', 400],
  ['"text"', 400],
  ['3', 400],
  ['{"name":"One","number":1', 400],
  ['{"name":"One","number":01}', 400],
  ['not json', 400],
];

/** The input of the list as a query string and as JSON. */
const pages: readonly (readonly [query: string, input: unknown, status: 200 | 400])[] = [
  ['', undefined, 200],
  ['', {}, 200],
  ['limit=1', { limit: 1 }, 200],
  ['limit=100', { limit: 100 }, 200],
  ['limit=007', { limit: 7 }, 200],
  ['kind=second&cursor=-5', { kind: 'second', cursor: -5 }, 200],
  ['unknown=1&constructor=2&__proto__=3', { unknown: 1, constructor: 2 }, 200],
  ['limit=0', { limit: 0 }, 400],
  ['limit=101', { limit: 101 }, 400],
  ['limit=-1', { limit: -1 }, 400],
  ['limit=1.5', { limit: 1.5 }, 400],
  ['limit=', { limit: '' }, 400],
  ['limit=null', { limit: null }, 400],
  ['limit=true', { limit: true }, 400],
  ['limit=0x10', { limit: '0x10' }, 400],
  ['limit=1e1', { limit: '1e1' }, 400],
  ['limit=1.0', { limit: '1.0' }, 400],
  ['cursor=1.0', { cursor: '1.0' }, 400],
  ['limit=%205', { limit: ' 5' }, 400],
  ['limit=+5', { limit: '+5' }, 400],
  ['limit=%D9%A5', { limit: '٥' }, 400],
  ['kind=', { kind: '' }, 400],
  ['kind=SECOND', { kind: 'SECOND' }, 400],
  ['kind=toString', { kind: 'toString' }, 400],
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

/** A list and a create: called directly, and with a middleware through tRPC's runner. */
const PAIRS = [
  { path: '/v1/samples', listName: 'listSamples', createName: 'createSample' },
  { path: '/v1/owned', listName: 'listOwned', createName: 'createOwned' },
] as const;
type Pair = (typeof PAIRS)[number];

const rest = ({ path }: Pair): Protocol => ({
  created: 201,
  create: async (body) => toOutcome(await call(path, post(body))),
  list: async (query) => toOutcome(await call(`${path}?${query}`)),
});
const trpc = ({ listName, createName }: Pair): Protocol => ({
  created: 200,
  create: async (body) => toOutcome(await call(`/trpc/${createName}`, post(body))),
  list: async (_query, input) => toOutcome(await call(rpcPath(listName, input))),
});

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
  if (error.message.includes('has no argument')) return { status: error.status, body: error };
  const message = fields === undefined ? error.message : toSentence(fields);
  expect(error).toEqual(
    toToolError(new ApiError({ code: error.code, definition: errorOf(error.code) }, { message }), true),
  );
  return { status: error.status, body: { ...error, message } };
}

const MEMBERS = ['name', 'number', 'kind', 'limit', 'cursor'];

type Send = (name: string, args: string) => Promise<Outcome>;

/** A tool refuses arguments that it does not have, which the others ignore: what is compared is what it does with the rest. */
async function sendKnown(send: Send, name: string, args: string): Promise<Outcome> {
  const parsed: unknown = canParse(args) ? JSON.parse(args) : undefined;
  const members = Object.entries(Array.isArray(parsed) ? {} : Object(parsed));
  const known = members.filter(([member]) => MEMBERS.includes(member));
  if (typeof parsed !== 'object' || known.length === members.length) return send(name, args);
  const [unknown = ''] = members.map(([member]) => member).filter((member) => !MEMBERS.includes(member));
  expect(await send(name, args)).toMatchObject({
    status: 400,
    body: { code: 'invalid_request', message: expect.stringContaining(unknown) },
  });
  return send(name, JSON.stringify(Object.fromEntries(known)));
}

/** A call as bytes, in which a number can be written as it is over the other protocols. */
function tools(mode: Mode, { listName, createName }: Pair): Protocol {
  const send: Send = async (name, args) => {
    const init = toolCalls[mode](name, 'ARGUMENTS');
    const { body } = await call('/mcp', {
      ...init,
      body: String(init.body).replace('"ARGUMENTS"', () => args),
    });
    return body.error === undefined ? fromToolResult(body.result) : fromProtocolError(body.error.code, args);
  };
  return {
    created: 200,
    create: (body) => sendKnown(send, createName, body),
    list: (_query, input = {}) => sendKnown(send, listName, JSON.stringify(input)),
  };
}

/** The SDK's own client. It cannot send what is not JSON, and sends null for a number that is none of JavaScript's. */
function sdkClient(mode: Mode, { listName, createName }: Pair): Protocol {
  let client: Promise<Client> | undefined;
  const send: Send = async (name, args) => {
    client ??= connectClient(service, mode);
    const sent = await client;
    try {
      const outcome = fromToolResult(await sent.callTool({ name, arguments: JSON.parse(args) }));
      return args.includes('1e400') ? withoutNullHint(outcome) : outcome;
    } catch (error) {
      if (error instanceof SyntaxError) return fromProtocolError(-32_700, args);
      return fromProtocolError((error as { code?: number }).code, args);
    }
  };
  return {
    created: 200,
    create: (body) => sendKnown(send, createName, body),
    list: (_query, input = {}) => sendKnown(send, listName, JSON.stringify(input)),
  };
}

function withoutNullHint({ status, body }: Outcome): Outcome {
  const { message, ...rest } = body as ErrorBody;
  expect(message).toContain('; null is not allowed');
  return { status, body: { ...rest, message: message.replace('; null is not allowed', '') } };
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

/** All of them. The SDK's own clients send what the tools do, so once is enough for them. */
const listProtocols = (withClients: boolean): Protocol[] =>
  PAIRS.flatMap((pair) => [
    rest(pair),
    trpc(pair),
    ...MODE_NAMES.flatMap((mode) => [tools(mode, pair), ...(withClients ? [sdkClient(mode, pair)] : [])]),
  ]);

describe.each([
  ['REST first', () => listProtocols(true)],
  ['REST last', () => listProtocols(false).toReversed()],
] as const)('%s', (_order, listOrdered) => {
  test('every body gets the same response over all protocols, with a .use() or without, whatever was called before', async () => {
    service = await startService({ resources: [samples] });
    call = createCaller(service);
    const order = listOrdered();
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

  test('every page gets the same response over all protocols, with a .use() or without, whatever was called before', async () => {
    service = await startService({ resources: [samples] });
    call = createCaller(service);
    await call('/v1/samples', post({ name: 'One', number: 1 }));
    const order = listOrdered();
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
    const { id } = await service.items.create(create.body);
    await service.database.pool.query(INSERT_OTHERS);
    const client = await connectClient(service, mode);
    /** What differs from call to call */
    const unify = (output: unknown) =>
      JSON.parse(
        JSON.stringify(output, (name, value) => (name === 'remaining' || name === 'usage' ? 0 : value)),
      );
    for (const { operationId, method, path, parameters = [] } of operations.filter(
      ({ method }) => method === 'GET',
    )) {
      const input = Object.fromEntries(
        parameters.filter((each) => each.in === 'path').map(({ name }) => [name, id]),
      );
      const overRest = await call(`/v1${path.replace(/\{\w+\}/, String(id))}`, { method });
      const overRpc = await call(rpcPath(operationId, input));
      const { structuredContent } = await client.callTool({ name: operationId, arguments: input });
      const output = (structuredContent as { items?: unknown }).items ?? structuredContent;
      expect([operationId, overRest.status]).toEqual([operationId, 200]);
      expect(unify(overRpc.body.result.data)).toEqual(unify(overRest.body));
      expect(unify(output)).toEqual(unify(overRest.body));
    }
  },
);

const SECRET = 'a secret of the service';
const NOT_YOURS = 'There is nothing of yours.';
/** What a middleware throws, or a handler behind one, and what the client learns of it. */
const THROWN = [
  ['an ApiError', new ApiError('not_found', { message: NOT_YOURS }), 'not_found', NOT_YOURS],
  ['another error', new Error(SECRET), 'internal_error', undefined],
  ['a text', SECRET, 'internal_error', undefined],
  ["an error of tRPC's", new TRPCError({ code: 'FORBIDDEN', message: SECRET }), 'internal_error', undefined],
  ["an error of zod's", z.literal(SECRET).safeParse(1).error, 'internal_error', undefined],
] as const;
const short = z.object({ text: z.string().max(10) }).meta({ id: 'Short', examples: [{ text: 'short' }] });

test.each([
  ...THROWN.map(([what, error, ...learned]) => ({
    what: `${what} that a middleware throws`,
    operation: procedure
      .use(async () => {
        throw error;
      })
      .meta(listMeta('/thrown'))
      .output(short)
      .query(() => ({ text: '' })),
    learned,
    logged: SECRET,
  })),
  ...THROWN.map(([what, error, ...learned]) => ({
    what: `${what} that a handler behind a middleware throws`,
    operation: owned
      .meta(listMeta('/thrown'))
      .output(short)
      .query(() => {
        throw error;
      }),
    learned,
    logged: SECRET,
  })),
  {
    what: 'an output that is none',
    operation: owned
      .meta(listMeta('/thrown'))
      .output(short)
      .query(() => ({ text: SECRET })),
    learned: ['internal_error', undefined] as const,
    logged: 'Output validation failed',
  },
])(
  '$what is the same error over all protocols, and nothing else leaks',
  async ({ operation, learned, logged }) => {
    const lines: string[] = [];
    const log = pino({ level: 'error' }, { write: (line) => void lines.push(line) });
    service = await startService({ log, resources: [{ ...samples, procedures: { fail: operation } }] });
    call = createCaller(service);
    const [code, message = new ApiError(code).message] = learned;
    const { body: expected, status } = new ApiError(code, { message });
    const overRest = await call('/v1/thrown');
    const single = await call('/trpc/fail');
    const batch = await call('/trpc/fail,fail?batch=1');
    expect([overRest.status, overRest.body]).toEqual([status, expected]);
    for (const { error } of [single.body, ...batch.body]) {
      expect(error.data).toEqual({
        code: expect.any(String),
        error: expected,
        httpStatus: status,
        path: 'fail',
      });
      expect(error.message).toBe(message);
    }
    const headers = { authorization: `Bearer ${service.key}`, 'trpc-accept': 'application/jsonl' };
    const stream = await (await fetch(`${service.url}/trpc/fail?batch=1`, { headers })).text();
    expect(stream).toContain(JSON.stringify(expected));
    const results = await Promise.all(MODE_NAMES.map((mode) => call('/mcp', toolCalls[mode]('fail'))));
    for (const { body } of results)
      expect(body.result.structuredContent).toMatchObject({
        code,
        message: expect.stringContaining(message),
      });
    expect(JSON.stringify([overRest.body, single.body, batch.body, stream, results])).not.toContain(SECRET);
    // Whoever runs the service learns why, of each call.
    const causes = lines.map((line) => JSON.parse(line).err?.message).filter((cause) => cause !== undefined);
    expect(causes).toEqual(Array(status === 500 ? 7 : 0).fill(expect.stringMatching(logged)));
  },
);

test('the message names each offending field', async () => {
  service = await startService({ resources: [samples] });
  call = createCaller(service);
  const { body } = await call('/v1/samples', post('{"name":"","kind":7}'));
  expectErrorBody(
    body,
    'invalid_request',
    'name must have 1 to 200 characters; number is required; kind must be one of first, second.',
  );
});

test('an id over tRPC and to a tool is strict JSON: anything but an integer within the bounds is a 400', async () => {
  service = await startService();
  call = createCaller(service);
  for (const id of ['1', null, 1.5, true, [], {}, 2 ** 53]) {
    const { status, body } = await call(rpcPath(read.name, read.inputOf(id)));
    expect([id, status, body.error.data.error.code]).toEqual([id, 400, 'invalid_request']);
    for (const toCall of Object.values(toolCalls)) {
      const { result } = (await call('/mcp', toCall(read.name, read.inputOf(id)))).body;
      expect([id, result.structuredContent.code]).toEqual([id, 'invalid_request']);
    }
  }
  const { body } = await call(rpcPath(read.name, read.inputOf(12345)));
  const { body: overRest } = await call(read.pathOf(12345));
  expectErrorBody(body.error.data.error, 'not_found', overRest.message);
});

test('over tRPC field errors are data as well; over REST the body has its three members only', async () => {
  service = await startService({ resources: [samples] });
  call = createCaller(service);
  const invalid = { name: ' ', number: '3', kind: 'lost' };
  const fields = {
    name: 'must not be white space only',
    number: 'must be an integer from -9007199254740991 to 9007199254740991',
    kind: 'must be one of first, second',
  };
  expectErrorBody((await call('/v1/samples', post(invalid))).body, 'invalid_request');
  expect((await call('/trpc/createSample', post(invalid))).body.error.data.fields).toEqual(fields);
  const batch = await call('/trpc/createSample,createSample?batch=1', post({ 0: invalid, 1: {} }));
  expect(batch.body.map(({ error }: { error: ErrorShape }) => error.data.fields)).toEqual([
    fields,
    { name: 'is required', number: 'is required' },
  ]);
  const streamed = await fetch(`${service.url}/trpc/createSample?batch=1`, {
    ...post({ 0: invalid }, { authorization: `Bearer ${service.key}`, 'trpc-accept': 'application/jsonl' }),
  });
  expect(await streamed.text()).toContain(`"fields":${JSON.stringify(fields)}`);
});

test('errors that are not about fields have none', async () => {
  service = await startService();
  call = createCaller(service);
  const responses = [
    await call(create.trpc, post('{')),
    await call(create.trpc, post('[]')),
    await call(create.trpc, post(create.body, { 'idempotency-key': 'ü' })),
    await call(rpcPath(read.name, read.inputOf(12345))),
    await call('/trpc/nope'),
    await call(list.trpc, { key: null }),
  ];
  for (const { body } of responses) expect(body.error.data).not.toHaveProperty('fields');
});
