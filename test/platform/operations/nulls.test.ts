import { expect, test } from 'vitest';
import { z } from 'zod';
import { parseInput } from '../../../src/platform/operations/parse-input.js';
import { create, list, TEXT } from '../../support/operations-under-test.js';
import { createCaller, post, rpcPath, startService } from '../../support/test-service.js';

test('null for a member that may be left out is refused with words that say so, over both protocols', async () => {
  const service = await startService();
  const call = createCaller(service);
  const body = { ...create.body, [list.filterName]: null };
  const rest = await call(create.path, post(body));
  const problem = expect.stringMatching(/^must be .*, or left out; null is not allowed$/);
  expect(rest.status).toBe(400);
  const trpc = await call(create.trpc, post(body));
  expect(trpc.body.error.data.error).toEqual(rest.body);
  const { fields } = trpc.body.error.data;
  expect(fields).toEqual({ [list.filterName]: problem });
  expect(rest.body.message).toBe(`${list.filterName} ${fields[list.filterName]}.`);
  const page = await call(rpcPath(list.name, { cursor: null, limit: null }));
  expect(page.body.error.message).toMatch(
    /^limit must be an integer from 1 to 100, or left out; null is not allowed; cursor .*, or left out; null is not allowed\.$/,
  );
  const query = await call(`${list.path}?cursor=null&limit=null`);
  expect(query.body.message).toBe(page.body.error.message);
  const required = await call(create.path, post({ ...create.body, [TEXT]: null }));
  expect(required.body.message).toMatch(new RegExp(`^${TEXT} must be a string of 1 to \\d+ characters\\.$`));
  await service.close();
});

test('it says so for every way to declare such a member, at any depth, and never where null is allowed', () => {
  const text = z.string({ error: 'must be a string' });
  const schema = z.object({
    optional: text.optional(),
    exact: text.exactOptional(),
    default: text.default('a'),
    nullable: text.nullable().optional(),
    required: text,
    list: z.array(z.object({ inner: text.optional() }).prefault({})),
  });
  const nothing = { optional: null, exact: null, default: null, nullable: null, required: null };
  const problem = 'must be a string, or left out; null is not allowed';
  try {
    parseInput(schema, { ...nothing, list: [{ inner: null }] });
    expect.unreachable();
  } catch (error) {
    const { issues } = (error as { cause: z.ZodError }).cause;
    expect(issues.map(({ path, message }) => `${path.join('.')}: ${message}`)).toEqual([
      `optional: ${problem}`,
      `exact: ${problem}`,
      `default: ${problem}`,
      'required: must be a string',
      `list.0.inner: ${problem}`,
    ]);
  }
});

test('no other wrong value of such a member is refused with a word of null, nor is null as the whole input', () => {
  const error = 'must be a string';
  const member = z.string({ error }).optional();
  const readMessages = (schema: z.ZodType, value: unknown) => {
    try {
      return parseInput(schema, value);
    } catch (thrown) {
      return (thrown as { cause: z.ZodError }).cause.issues.map(({ message }) => message);
    }
  };
  expect(readMessages(z.object({ a: member, b: member }), { a: 1, b: {} })).toEqual([error, error]);
  expect(readMessages(member, null)).toEqual([error]);
});
