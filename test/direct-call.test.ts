import { expect, test } from 'vitest';
import { z } from 'zod';
import { createRouter } from '../src/resource.js';
import { createProcedure, type OperationMeta } from '../src/trpc.js';

const procedure = createProcedure();
const meta = { openapi: { method: 'GET', path: '/x', summary: 'X' }, stability: 'beta' } as const;
const post = { ...meta, openapi: { ...meta.openapi, method: 'POST' } } satisfies OperationMeta;

function createWith(operation: Parameters<typeof createRouter>[0][number]['procedures'][string], name = 'x') {
  return createRouter([
    {
      name: 'test',
      description: 'Test',
      createStore: () => ({}),
      warmUp: async () => {},
      procedures: { [name]: operation },
    },
  ]);
}

test('an operation is called without the middleware runner, with its parsed input', async () => {
  const router = createWith(
    procedure
      .meta(meta)
      .input(z.object({ n: z.number().default(2) }))
      .output(z.number())
      .query(({ input, path }) => [path, input.n] as unknown as number),
  );
  const call = router._def.procedures.x as unknown as (options: object) => Promise<unknown>;
  const options = { ctx: {}, path: 'x', getRawInput: async () => ({ unknown: 1 }) };
  // tRPC's runner would reject this output.
  expect(await call(options)).toEqual(['x', 2]);
  await expect(call({ ...options, getRawInput: async () => ({ n: '3' }) })).rejects.toMatchObject({
    code: 'BAD_REQUEST',
  });
});

test.each([
  [
    /\.use\(\)/,
    procedure
      .meta(meta)
      .output(z.void())
      .use(({ next }) => next())
      .query(() => {}),
  ],
  [
    /more than one \.input\(\)/,
    procedure
      .meta(meta)
      .input(z.object({ a: z.string() }))
      .input(z.object({ b: z.string() }))
      .output(z.void())
      .query(() => {}),
  ],
  [/no \.meta\(\)/, procedure.output(z.void()).query(() => {})],
  [/no \.output\(\)/, procedure.meta(meta).query(() => {})],
  [
    /a query cannot be served as POST/,
    procedure
      .meta(post)
      .output(z.void())
      .query(() => {}),
  ],
  [
    /a mutation cannot be served as GET/,
    procedure
      .meta(meta)
      .output(z.void())
      .mutation(() => {}),
  ],
  [
    /204.*201/,
    procedure
      .meta({ ...post, success: { status: 201, location: () => '/x' } })
      .output(z.void())
      .mutation(() => {}),
  ],
])('a procedure that does not qualify is reported at the start: %s', (message, operation) => {
  expect(() => createWith(operation, 'doX')).toThrow(message);
  expect(() => createWith(operation, 'doX')).toThrow(/^doX cannot be an operation/);
});

test('two operations cannot have the same name', () => {
  const operation = procedure
    .meta(meta)
    .output(z.void())
    .query(() => {});
  const resource = {
    name: 'test',
    description: 'Test',
    createStore: () => ({}),
    warmUp: async () => {},
    procedures: { doX: operation },
  };
  expect(() => createRouter([resource, resource])).toThrow('Two operations are named doX');
});
