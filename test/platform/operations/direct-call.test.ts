import { expect, test } from 'vitest';
import { z } from 'zod';
import { createProcedure, type OperationMeta } from '../../../src/platform/operations/builder.js';
import { int64, integer } from '../../../src/platform/operations/input.js';
import { createRouter } from '../../../src/platform/operations/resource.js';

const procedure = createProcedure();
const meta = {
  openapi: { method: 'GET', path: '/x', summary: 'X' },
  stability: 'beta',
  scope: 'pets:read',
} as const;
const post = { ...meta, openapi: { ...meta.openapi, method: 'POST' } } satisfies OperationMeta;

function createWith(operation: Parameters<typeof createRouter>[0][number]['procedures'][string], name = 'x') {
  return createRouter([
    {
      name: 'test',
      description: 'Test',
      createStore: () => ({}),
      procedures: { [name]: operation },
    },
  ]);
}

test('an operation is called without the middleware runner, with its parsed input', async () => {
  const router = createWith(
    procedure
      .meta(meta)
      .input(z.object({ n: integer(0, 9).default(2) }))
      .output(z.number())
      .query(({ input, path }) => [path, input.n] as unknown as number),
  );
  const call = router._def.procedures.x as unknown as (options: object) => Promise<unknown>;
  const ctx = { apiKey: { scopes: ['pets:read'] } };
  const options = { ctx, path: 'x', getRawInput: async () => ({ unknown: 1 }) };
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
    /its scope is none of pets:read, /,
    procedure
      .meta({ ...meta, scope: 'nobody:reads' as 'pets:read' })
      .output(z.void())
      .query(() => {}),
  ],
  [
    /204.*201/,
    procedure
      .meta({ ...post, success: { status: 201, location: () => '/x' } })
      .output(z.void())
      .mutation(() => {}),
  ],
  [
    /201 and does not say whether it is idempotent/,
    procedure
      .meta({ ...post, success: { status: 201, location: () => '/x' } })
      .output(z.string())
      .mutation(() => ''),
  ],
])('a procedure that does not qualify is reported at the start: %s', (message, operation) => {
  expect(() => createWith(operation, 'doX')).toThrow(message);
  expect(() => createWith(operation, 'doX')).toThrow(/^doX cannot be an operation/);
});

test.each([
  ['petId', z.object({ petId: z.number() })],
  ['petId', z.object({ petId: z.number().min(0) }).meta({ id: 'Reference' })],
  ['count', z.object({ filter: z.object({ count: z.number().max(9) }).optional() })],
  ['ids', z.object({ ids: z.array(z.number().nullable()).default([]) })],
  ['its input', z.record(z.string(), z.number())],
])('an input whose %s accepts any number stops the start', (member, input) => {
  const operation = procedure
    .meta(post)
    .input(input)
    .output(z.void())
    .mutation(() => {});
  expect(() => createWith(operation, 'doX')).toThrow(
    `doX cannot be an operation: ${member} accepts any number: use integer() or int64() of src/platform/operations/input.ts.`,
  );
});

test('an input may have numbers within bounds, and fixed ones', () => {
  const version = z.literal(1);
  const input = z.object({ version, id: int64(), count: integer(0, 9), ratio: z.number().gt(0).lt(1) });
  const operation = procedure
    .meta(post)
    .input(input)
    .output(z.void())
    .mutation(() => {});
  expect(() => createWith(operation)).not.toThrow();
});

test('two operations cannot have the same name, nor can two resources', () => {
  const operation = procedure
    .meta(meta)
    .output(z.void())
    .query(() => {});
  const resource = {
    name: 'test',
    description: 'Test',
    createStore: () => ({}),
    procedures: { doX: operation },
  };
  expect(() => createRouter([resource, { ...resource, name: 'other' }])).toThrow(
    'Two operations are named doX',
  );
  const other = { ...resource, procedures: { doY: operation } };
  expect(() => createRouter([resource, other])).toThrow('Two resources are named test');
});
