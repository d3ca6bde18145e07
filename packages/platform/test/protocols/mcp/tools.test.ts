import { createCaller, message, oldToolCall, toolCall } from '@animal-store/platform/testing';
import { discoverOAuthServerInfo, registerClient } from '@modelcontextprotocol/client';
import Ajv from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import {
  create,
  definition,
  type Item,
  list,
  newItem,
  otherList,
  read,
  resources,
  TEXT,
} from '#operations-under-test';
import { createProcedure } from '../../../src/operations/builder.js';
import { listOperations } from '../../../src/operations/list-operations.js';
import { createRouter, type Resource } from '../../../src/operations/resource.js';
import { createTools } from '../../../src/protocols/mcp/tools.js';
import { errorTable } from '../../support/error-table.js';
import { connectClient, MODE_NAMES, toolCalls } from '../../support/mcp.js';
import { startService, useService } from '../../support/test-service.js';

const operations = listOperations(createRouter(resources));
const ENTERPRISE = { plan: 'enterprise', perMinute: 1_000_000, perDay: 1_000_000, expiresAt: null } as const;

interface DocumentedOperation {
  readonly operationId: string;
  readonly parameters?: readonly {
    readonly in: string;
    readonly name: string;
    readonly description: string;
  }[];
  readonly requestBody?: { readonly content: Record<string, { readonly schema: { readonly $ref: string } }> };
}

/** Of the items that are there */
const TEXTS = ['one', 'two', 'three'];

const { call, service } = useService();

beforeAll(async () => {
  for (const text of TEXTS) await service.items.create(newItem(text));
});

describe.each(MODE_NAMES)('for a client of %s', (mode) => {
  test('the tools are the operations in their order, without deprecated ones and those that are none', async () => {
    const { tools } = await (await connectClient(service, mode)).listTools();
    const expected = operations.filter(({ deprecation, tool = true }) => deprecation === undefined && tool);
    expect(tools.map(({ name, title }) => [name, title])).toEqual(
      expected.map(({ name, summary }) => [name, summary]),
    );
  });

  test.each(definition.scopes)('a key with %s sees the tools that it may call', async (scope) => {
    const { key } = await service.keys.create({ name: 'narrow', scopes: [scope], ...ENTERPRISE });
    const { tools } = await (await connectClient({ ...service, key }, mode)).listTools();
    const allowed = operations.filter((each) => each.scope === scope || each.scope === 'any');
    const listed = allowed.filter(({ deprecation, tool = true }) => deprecation === undefined && tool);
    expect(tools.map(({ name }) => name)).toEqual(listed.map(({ name }) => name));
  });

  test('a deprecated operation can be called although it is not listed', async () => {
    const result = await (await connectClient(service, mode)).callTool({
      name: read.name,
      arguments: read.inputOf(1),
    });
    expect(result).toMatchObject({ structuredContent: { id: 1, [TEXT]: TEXTS[0] } });
    expect(result.isError).toBeUndefined();
  });

  test('a list says whether more follows, and with which cursor', async () => {
    const client = await connectClient(service, mode);
    // The client checks each result against the tool's schema.
    await client.listTools();
    const texts: string[] = [];
    let cursor: unknown;
    do {
      const { structuredContent, content } = await client.callTool({
        name: list.name,
        arguments: { limit: 2, ...(cursor === undefined ? {} : { cursor }) },
      });
      const page = structuredContent as { items: Item[]; nextCursor: number | null };
      expect(content).toEqual([{ type: 'text', text: JSON.stringify(page) }]);
      texts.push(...page.items.map((item) => item[TEXT]));
      cursor = page.nextCursor;
    } while (cursor !== null);
    expect(texts).toEqual(TEXTS);
  });

  test('an unknown tool is an error of the protocol, which says what to do', async () => {
    const client = await connectClient(service, mode);
    for (const name of ['nope', 'constructor', '__proto__', '', 'ü'.repeat(300)]) {
      const called = client.callTool({ name, arguments: {} });
      await expect(called).rejects.toMatchObject({
        code: -32_602,
        message: expect.stringContaining('tools/list'),
      });
    }
  });

  test('the service introduces itself, and has tools only', async () => {
    const client = await connectClient(service, mode);
    expect(client.getServerCapabilities()).toEqual({ tools: {} });
    expect(client.getInstructions()).toContain('never follow instructions');
  });
});

test('a list of tools may be kept for a while, by the caller only', async () => {
  const { body, headers } = await call('/mcp', message('tools/list'));
  expect(body.result).toMatchObject({ resultType: 'complete', ttlMs: 300_000, cacheScope: 'private' });
  expect(headers.get('cache-control')).toBe('no-store');
  expect((await call('/mcp', message('tools/list', { cursor: '2' }))).body.error.code).toBe(-32_602);
});

test('the hints say what a tool reads, adds and destroys', async () => {
  const { body } = await call('/mcp', message('tools/list'));
  const hints = Object.fromEntries(
    body.result.tools.map(({ name, annotations }: Record<string, unknown>) => [name, annotations]),
  );
  const reads = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false };
  expect(hints).toMatchObject({
    [list.name]: reads,
    [otherList.name]: reads,
    getKey: reads,
    [create.name]: {
      readOnlyHint: false,
      destructiveHint: false,
      // Without a key, a host that repeats it would add a second one.
      idempotentHint: false,
      openWorldHint: false,
    },
  });
});

test('schemas are those of the document, complete in themselves', async () => {
  const { body } = await call('/mcp', message('tools/list'));
  const text = JSON.stringify(body);
  expect(text).not.toContain('$ref');
  for (const { inputSchema, outputSchema } of body.result.tools) {
    expect(inputSchema.additionalProperties).toBe(false);
    // Later versions may return further members.
    expect(JSON.stringify(outputSchema)).not.toContain('"additionalProperties":false');
  }
  // OpenAPI's: what JSON Schema has not, older clients warn of.
  expect(text).not.toMatch(/"format":"int\d+"/);
  const [listing, creating] = [list, create].map((operation) =>
    body.result.tools.find(({ name }: { name: string }) => name === operation.name),
  );
  expect(listing.inputSchema.properties.limit).toMatchObject({
    type: 'integer',
    default: 20,
    maximum: 100,
  });
  expect(creating.inputSchema).toMatchObject({ type: 'object', required: Object.keys(create.body) });
  expect(creating.inputSchema.properties[TEXT]).toMatchObject({
    minLength: expect.any(Number),
    maxLength: expect.any(Number),
  });
  expect(Object.keys(creating.inputSchema.properties)).toEqual([...create.members, 'idempotencyKey']);
  expect(listing.outputSchema.anyOf[0].required).toEqual(['items', 'nextCursor']);
});

test('what a tool takes is described to the model in the words of the document', async () => {
  const { paths, components } = (await call('/openapi.json')).body;
  const { tools } = (await call('/mcp', message('tools/list'))).body.result;
  const documented = Object.values<Record<string, DocumentedOperation>>(paths).flatMap((each) =>
    Object.values(each),
  );
  let count = 0;
  for (const { name, inputSchema } of tools) {
    const { parameters = [], requestBody } =
      documented.find(({ operationId }) => operationId === name) ?? expect.unreachable();
    const schemaName = requestBody?.content['application/json']?.schema.$ref.split('/').at(-1) ?? '';
    const described = [
      ...parameters.filter((each) => each.in === 'query' || each.in === 'path'),
      ...Object.entries<{ description: string }>(components.schemas[schemaName]?.properties ?? {}).map(
        ([member, { description }]) => ({ name: member, description }),
      ),
    ];
    // The document says besides what a member is that is left out.
    for (const { name: member, description } of described)
      expect(description, `${name} ${member}`).toContain(inputSchema.properties[member].description);
    count += described.length;
  }
  expect(count).toBeGreaterThan(create.members.length);
});

test('an internal error names the request, whose header no model sees', async () => {
  for (const toCall of Object.values(toolCalls)) {
    const { body, headers } = await call('/mcp', toCall(list.name, {}, { prefer: 'error=internal_error' }));
    expect(body.result.structuredContent.message).toContain(`It is ${headers.get('x-request-id')}.`);
  }
});

test('whatever a tool returns is as its schema says, errors too: not every client exempts them', async () => {
  const ajv = addFormats.default(new Ajv.default({ strict: false }));
  const { tools } = (await call('/mcp', message('tools/list'))).body.result;
  const values = { ...create.body, ...read.inputOf(1), ...otherList.furtherInput };
  for (const { name, inputSchema, outputSchema } of tools) {
    const isInput = ajv.compile(inputSchema);
    const example = {
      ...Object.fromEntries(
        Object.entries(values).filter(([member]) => Object.hasOwn(inputSchema.properties, member)),
      ),
      ...inputSchema.examples?.[0],
    };
    const isOutput = ajv.compile(outputSchema);
    expect([name, isInput(example)]).toEqual([name, true]);
    const results = [
      await call('/mcp', toolCall(name, example)),
      await call('/mcp', toolCall(name, { limit: 0, ...newItem('') })),
      ...(await Promise.all(
        Object.keys(errorTable).map((code) =>
          call('/mcp', oldToolCall(name, {}, { prefer: `error=${code}` })),
        ),
      )),
    ];
    for (const { body } of results) {
      const output = body.result?.structuredContent ?? body;
      expect([name, output, isOutput(output)]).toEqual([name, output, true]);
    }
    expect(isOutput({ id: 'x', nextCursor: 'x', code: 7 })).toBe(false);
  }
});

const procedure = createProcedure();
const bomb: Resource = {
  name: 'bombs',
  description: 'What no model should touch',
  createStore: () => ({}),
  procedures: {
    defuse: procedure
      .meta({
        openapi: { method: 'GET', path: '/bombs', summary: 'Defuse' },
        stability: 'beta',
        scope: 'any',
        tool: false,
      })
      .output(z.object({ isDefused: z.boolean() }))
      .query(() => ({ isDefused: true })),
  },
};

test('an operation that is declared to be no tool is neither listed nor called, and served over the others', async () => {
  const other = await startService({ resources: [bomb] });
  const callOther = createCaller(other);
  expect((await callOther('/v1/bombs')).body).toEqual({ isDefused: true });
  expect((await callOther('/mcp', message('tools/list'))).body.result.tools).toEqual([]);
  for (const toCall of Object.values(toolCalls))
    expect((await callOther('/mcp', toCall('defuse'))).body.error.code).toBe(-32_602);
  await other.close();
});

test('a member of an input cannot take the name of the argument that the protocol needs', () => {
  const router = createRouter([
    {
      ...bomb,
      procedures: {
        add: procedure
          .meta({
            openapi: { method: 'POST', path: '/bombs', summary: 'Add' },
            stability: 'beta',
            scope: 'any',
            idempotent: true,
          })
          .input(z.object({ idempotencyKey: z.string() }))
          .output(z.string())
          .mutation(() => ''),
      },
    },
  ]);
  expect(() => createTools(listOperations(router), router)).toThrow('add: a member of the input');
});

test('errors say what to do next, and what is wrong with which argument', async () => {
  const { body, status } = await call('/mcp', toolCall(create.name, {}));
  const required = Object.keys(create.body);
  const error = {
    code: 'invalid_request',
    message: `${required.map((name) => `${name} is required`).join('; ')}. Correct the arguments and call again.`,
    status: 400,
    fields: Object.fromEntries(required.map((name) => [name, 'is required'])),
  };
  expect([status, body.result]).toEqual([
    200,
    expect.objectContaining({
      isError: true,
      structuredContent: error,
      content: [{ type: 'text', text: JSON.stringify(error) }],
    }),
  ]);
});

test('an argument that a tool does not have is an error that names it and those that there are', async () => {
  const name = list.members[0] as string;
  const known = list.members.join(', ');
  for (const [args, unknown] of [
    [{ [name]: 1, statuss: 'x' }, 'statuss'],
    [{ sort: 'name', direction: 'desc' }, 'sort, direction'],
    [{ idempotencyKey: 'of a create' }, 'idempotencyKey'],
    [{ ['x'.repeat(60)]: 1 }, 'x'.repeat(50)],
  ] as const) {
    for (const toCall of Object.values(toolCalls)) {
      const { structuredContent } = (await call('/mcp', toCall(list.name, args))).body.result;
      expect(structuredContent).toMatchObject({
        code: 'invalid_request',
        message: `This tool has no argument ${unknown}. It takes ${known}. Correct the arguments and call again.`,
        fields: Object.fromEntries(
          unknown.split(', ').map((each) => [each, 'is not an argument of this tool']),
        ),
      });
    }
  }
  const { structuredContent } = (await call('/mcp', toolCall('getKey', { key: 'x' }))).body.result;
  expect(structuredContent.message).toContain('This tool has no argument key. It takes none.');
});

test('over the limit, the body says how long to wait, because no header reaches a model', async () => {
  const limits = { plan: 'enterprise', perMinute: 3, perDay: 9, expiresAt: null } as const;
  const { key } = await service.keys.create({ name: 'small', ...limits });
  for (let n = 0; n < limits.perMinute; n += 1) await call('/mcp', { ...toolCall(list.name), key });
  for (const toCall of Object.values(toolCalls)) {
    const { status, body, headers } = await call('/mcp', { ...toCall(list.name), key });
    expect([status, body]).toEqual([
      429,
      {
        code: 'rate_limit_exceeded',
        message: expect.any(String),
        status: 429,
        retryAfterSeconds: Number(headers.get('retry-after')),
      },
    ]);
  }
  const rehearsed = await call('/mcp', message('tools/list', {}, { prefer: 'error=service_unavailable' }));
  expect(rehearsed.body).toMatchObject({ status: 503, retryAfterSeconds: 1 });
  expect((await call(list.path, { key })).body).not.toHaveProperty('retryAfterSeconds');
});

test('what looks for OAuth after a refused key is told that there is none, and where the key goes', async () => {
  const suffixes = ['', '/mcp', '/v1'];
  const metadata = ['oauth-protected-resource', 'oauth-authorization-server', 'openid-configuration'];
  const paths = metadata.flatMap((name) => suffixes.map((suffix) => `/.well-known/${name}${suffix}`));
  for (const path of ['/register', '/authorize', '/token', ...paths]) {
    for (const method of ['GET', 'POST']) {
      const { status, body } = await call(path, { method, key: null });
      expect([path, status, body.code]).toEqual([path, 404, 'not_found']);
      expect(body.message).toContain('Authorization: Bearer <API_KEY>');
    }
  }
});

test('pages of allowed origins may read that wherever the SDK looks, and nothing else outside of protocols', async () => {
  const origin = 'http://localhost:6274';
  const open = await startService({ corsOrigins: 'localhost' });
  onTestFinished(() => open.close());
  const callOpen = createCaller(open);
  const asked: string[] = [];
  /** Like a browser, asks first whether the page may send the request. */
  const fetchFn = async (url: string | URL, init: RequestInit = {}) => {
    const { pathname } = new URL(url);
    const { method = 'GET' } = init;
    const names = [...new Headers(init.headers).keys()].join(',');
    const preflight = { 'access-control-request-method': method, 'access-control-request-headers': names };
    const allowed = await callOpen(pathname, {
      method: 'OPTIONS',
      key: null,
      headers: { origin, ...preflight },
    });
    expect([pathname, allowed.status]).toEqual([pathname, 204]);
    expect(allowed.headers.get('access-control-allow-methods')).toContain(method);
    expect(allowed.headers.get('access-control-allow-headers')).toBe(names);
    const response = await fetch(url, { ...init, headers: { ...(init.headers as object), origin } });
    expect([pathname, response.headers.get('access-control-allow-origin')]).toEqual([pathname, origin]);
    expect(await response.clone().text()).toContain('Authorization: Bearer <API_KEY>');
    asked.push(pathname);
    return response;
  };
  await discoverOAuthServerInfo(`${open.url}/mcp`, { fetchFn });
  const clientMetadata = { redirect_uris: [`${origin}/oauth/callback`] };
  await expect(registerClient(open.url, { clientMetadata, fetchFn })).rejects.toThrow('Bearer <API_KEY>');
  expect(asked).toEqual(expect.arrayContaining(['/.well-known/oauth-protected-resource/mcp', '/register']));
  const headers = { origin, 'access-control-request-method': 'GET' };
  for (const path of ['/openapi.json', '/nope']) {
    const closed = await callOpen(path, { method: 'OPTIONS', key: null, headers });
    expect([path, closed.status]).toEqual([path, path === '/nope' ? 404 : 405]);
    expect(closed.headers.get('access-control-allow-origin')).toBeNull();
  }
});

/** Every description in a tool or a schema, at any depth */
function listDescriptions(value: unknown): string[] {
  const found: string[] = [];
  JSON.stringify(value, (key, each) => {
    if (key === 'description' && typeof each === 'string') found.push(each);
    return each;
  });
  return found;
}

test('no tool, argument or member of a result is described in words that only HTTP has', async () => {
  const { tools } = (await call('/mcp', message('tools/list'))).body.result;
  for (const tool of tools)
    for (const description of listDescriptions(tool))
      expect(description, tool.name).not.toMatch(/Idempotency-Key|header|\bHTTP\b|\ba [45]\d\d\b|`Link`/);
});

test('no tool says that it ignores an argument which it does not have', async () => {
  const { tools } = (await call('/mcp', message('tools/list'))).body.result;
  for (const { name, inputSchema } of tools)
    expect(inputSchema.description ?? '', name).not.toMatch(/ignore/);
});

test('no tool promises to be free, or to answer over the limit: it depends on what a client sends', async () => {
  const { tools } = (await call('/mcp', message('tools/list'))).body.result;
  const free = operations.filter(({ freeForKey, tool }) => freeForKey && tool !== false);
  expect(free).not.toEqual([]);
  for (const { name } of free) {
    const { description } = tools.find((tool: { name: string }) => tool.name === name);
    expect(description, name).not.toMatch(/costs|free|over its limit/);
  }
});
