import { expect, test } from 'vitest';
import { z } from 'zod';
import { parseInput } from '../../../src/platform/operations/parse-input.js';
import { createCaller, post, rpcPath, startService } from '../../support/test-service.js';

test('null for a member that may be left out is refused with words that say so, over both protocols', async () => {
  const service = await startService();
  const call = createCaller(service);
  const status = 'must be one of available, pending, sold, or left out; null is not allowed';
  const body = { name: 'Rex', categoryId: 1, status: null };
  const rest = await call('/v1/pets', post(body));
  expect([rest.status, rest.body.message]).toEqual([400, `status ${status}.`]);
  const trpc = await call('/trpc/createPet', post(body));
  expect(trpc.body.error.data.error).toEqual(rest.body);
  expect(trpc.body.error.data.fields).toEqual({ status });
  const page = await call(rpcPath('listPets', { cursor: null, limit: null }));
  expect(page.body.error.message).toMatch(
    /^limit must be an integer from 1 to 100, or left out; null is not allowed; cursor .*, or left out; null is not allowed\.$/,
  );
  const required = await call('/v1/pets', post({ name: null, categoryId: 1 }));
  expect(required.body.message).toBe('name must be a string of 1 to 200 characters.');
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
