import { createCaller, post, rpcPath } from '@animal-store/platform/testing';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { create, list, resources, TEXT } from '#operations-under-test';
import { createProcedure } from '../../src/operations/builder.js';
import { parseInput } from '../../src/operations/direct-call.js';
import { fieldError, text } from '../../src/operations/input.js';
import { listOperations } from '../../src/operations/list-operations.js';
import { createRouter, type Resource } from '../../src/operations/resource.js';
import { type JsonSchema, toArgumentsSchema } from '../../src/protocols/mcp/schemas.js';
import { startService } from '../support/test-service.js';

test('null for a member that may be left out is refused with words that say so, over both protocols', async () => {
  const service = await startService();
  const call = createCaller(service);
  const body = { ...create.body, [list.filterName]: null };
  const rest = await call(create.path, post(body));
  const problem = expect.stringMatching(/^must be .*; null is not allowed$/);
  expect(rest.status).toBe(400);
  const trpc = await call(create.trpc, post(body));
  expect(trpc.body.error.data.error).toEqual(rest.body);
  const { fields } = trpc.body.error.data;
  expect(fields).toEqual({ [list.filterName]: problem });
  expect(rest.body.message).toBe(`${list.filterName} ${fields[list.filterName]}.`);
  const page = await call(rpcPath(list.name, { cursor: null, limit: null }));
  expect(page.body.error.message).toMatch(
    /^limit must be an integer from 1 to 100; null is not allowed; cursor .*; null is not allowed\.$/,
  );
  const required = await call(create.path, post({ ...create.body, [TEXT]: null }));
  expect(required.body.message).toMatch(
    new RegExp(`^${TEXT} must be a string of 1 to \\d+ characters; null is not allowed\\.$`),
  );
  await service.close();
});

/** Its parameters may be the text `null`. */
const words: Resource = {
  name: 'words',
  description: 'Words',
  createStore: () => ({}),
  procedures: {
    listWords: createProcedure()
      .meta({
        openapi: { method: 'GET', path: '/words', summary: 'List words' },
        stability: 'beta',
        scope: list.scope,
      })
      .input(z.object({ kind: z.enum(['null', 'void']).optional(), word: text(1, 9).optional() }))
      .output(z.object({ kind: z.string().optional(), word: z.string().optional() }))
      .query(({ input }) => input),
  },
};

test('the text null in a query is refused as null is over tRPC, unless the parameter may be that text', async () => {
  const all = [...resources, words];
  const service = await startService({ resources: all });
  const call = createCaller(service);
  const refused: string[] = [];
  for (const { name, method, path, input, parameters } of listOperations(createRouter(all))) {
    const inPath = parameters.filter((each) => each.in === 'path').map((each) => [each.name, 1]);
    for (const { name: parameter } of parameters.filter((each) => each.in === 'query')) {
      const { properties = {} } = toArgumentsSchema(input);
      const { type, enum: values } = properties[parameter] as JsonSchema;
      const isText = type === 'string' && values?.includes('null') !== false;
      const sent = { ...Object.fromEntries(inPath), [parameter]: isText ? 'null' : null };
      const rest = await call(`/v1${path.replaceAll(/\{\w+\}/g, '1')}?${parameter}=null`, { method });
      const trpc = await (method === 'GET' ? call(rpcPath(name, sent)) : call(`/trpc/${name}`, post(sent)));
      const [asText, asNull] = [rest.body?.message, trpc.body.error?.message];
      expect([name, parameter, asText]).toEqual([name, parameter, asNull]);
      if (!isText) refused.push(parameter);
    }
  }
  expect(refused).toEqual(expect.arrayContaining(list.members));
  expect((await call('/v1/words?kind=null&word=null')).body).toEqual({ kind: 'null', word: 'null' });
  await service.close();
});

test('it says so for every way to declare such a member, at any depth, and never where null is allowed', () => {
  const member = z.string({ error: fieldError('must be a string') });
  const schema = z.object({
    optional: member.optional(),
    exact: member.exactOptional(),
    default: member.default('a'),
    nullable: member.nullable().optional(),
    required: member,
    list: z.array(z.object({ inner: member.optional() }).prefault({})),
  });
  const nothing = { optional: null, exact: null, default: null, nullable: null, required: null };
  const problem = 'must be a string; null is not allowed';
  try {
    parseInput(schema, { ...nothing, list: [{ inner: null }] });
    expect.unreachable();
  } catch (error) {
    const { issues } = (error as { cause: z.ZodError }).cause;
    expect(issues.map(({ path, message }) => `${path.join('.')}: ${message}`)).toEqual([
      `optional: ${problem}`,
      `exact: ${problem}`,
      `default: ${problem}`,
      `required: ${problem}`,
      `list.0.inner: ${problem}`,
    ]);
  }
});

test('no other wrong value of such a member is refused with a word of null', () => {
  const error = 'must be a string';
  const member = z.string({ error: fieldError(error) }).optional();
  const readMessages = (schema: z.ZodType, value: unknown) => {
    try {
      return parseInput(schema, value);
    } catch (thrown) {
      return (thrown as { cause: z.ZodError }).cause.issues.map(({ message }) => message);
    }
  };
  expect(readMessages(z.object({ a: member, b: member }), { a: 1, b: {} })).toEqual([error, error]);
});
