import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { list } from '#operations-under-test';
import { ApiError } from '../../src/errors/api-error.js';
import { createProcedure, type OperationMeta, router } from '../../src/operations/builder.js';
import { rejectOnce } from '../../src/operations/idempotency-key.js';
import { int64, integer } from '../../src/operations/input.js';
import { createRouter, type Resource } from '../../src/operations/resource.js';

const procedure = createProcedure();
const meta = {
  openapi: { method: 'GET', path: '/x', summary: 'X' },
  stability: 'beta',
  scope: list.scope,
} as const;
const post = { ...meta, openapi: { ...meta.openapi, method: 'POST' } } satisfies OperationMeta;

function createWith(operation: Resource['procedures'][string], name = 'x') {
  return createRouter([
    {
      name: 'test',
      description: 'Test',
      createStore: () => ({}),
      procedures: { [name]: operation },
    },
  ]);
}

const ctx = { apiKey: { id: 'an id', scopes: [list.scope] }, once: rejectOnce };

/** Calls an operation as the protocols do. */
function callWith(
  operation: Parameters<typeof createWith>[0],
  input: unknown = undefined,
  context: object = ctx,
) {
  const call = createWith(operation)._def.procedures.x as unknown as (options: object) => Promise<unknown>;
  const { type } = operation._def;
  return call({ ctx: context, path: 'x', type, batchIndex: 0, getRawInput: async () => input });
}

test('an operation gets its parsed input', async () => {
  const operation = procedure
    .meta(meta)
    .input(z.object({ n: integer(0, 9).default(2) }))
    .output(z.array(z.union([z.string(), z.number()])))
    .query(({ input, path }) => [path, input.n]);
  expect(await callWith(operation, { unknown: 1 })).toEqual(['x', 2]);
  await expect(callWith(operation, { n: '3' })).rejects.toMatchObject({ code: 'BAD_REQUEST' });
});

test('a .use() runs as tRPC documents it, and finds what the context inherits', async () => {
  const context = Object.assign(Object.create({ store: 'the store' }), ctx);
  const steps: unknown[] = [];
  const operation = createProcedure<{ readonly store: string }>()
    .meta(meta)
    .use(async ({ ctx, next, meta, path, type }) => {
      steps.push([ctx.store, meta?.scope, path, type]);
      const result = await next({ ctx: { added: 'added' } });
      steps.push(result.ok);
      return result;
    })
    .input(z.object({ n: integer(0, 9).default(2) }))
    .use(({ input, next }) => {
      steps.push(input);
      return next();
    })
    .output(z.array(z.string()))
    .query(({ ctx }) => [ctx.store, ctx.added, ctx.apiKey.id]);
  expect(await callWith(operation, {}, context)).toEqual(['the store', 'added', 'an id']);
  expect(steps).toEqual([['the store', list.scope, 'x', 'query'], { n: 2 }, true]);
  await expect(callWith(operation, { n: null }, context)).rejects.toMatchObject({
    code: 'BAD_REQUEST',
    cause: { issues: [{ message: 'must be an integer from 0 to 9; null is not allowed' }] },
  });
});

describe('ctx.once', () => {
  const created = { output: 'created', isReplay: false };
  const idempotent = procedure.meta({ ...post, idempotent: true }).output(z.string());

  test('an idempotent operation creates with the key of its call, and reports whether it was a replay', async () => {
    const idempotency = { value: 'one', bodyHash: new Uint8Array(32), setReplayed: vi.fn() };
    const create = vi.fn(async () => ({ output: 'created', isReplay: true }));
    const operation = idempotent.mutation(({ ctx }) => ctx.once(create));
    expect(await callWith(operation, undefined, { ...ctx, idempotency })).toBe('created');
    const { value, bodyHash } = idempotency;
    expect(create).toHaveBeenCalledExactlyOnceWith({
      apiKeyId: 'an id',
      value,
      operation: 'x',
      batchIndex: 0,
      bodyHash,
    });
    expect(idempotency.setReplayed).toHaveBeenCalledExactlyOnceWith(true);
    expect(await callWith(operation)).toBe('created');
    expect(create).toHaveBeenLastCalledWith(undefined);
  });

  test.each([
    [
      'an idempotent operation without it',
      /^x is declared idempotent.*within ctx\.once/,
      idempotent.mutation(() => ''),
    ],
    [
      'an idempotent operation with a .use() and without it',
      /^x is declared idempotent.*within ctx\.once/,
      idempotent.use(({ next }) => next()).mutation(() => ''),
    ],
    [
      'one that is not declared idempotent',
      /declare idempotent: true/,
      procedure
        .meta({ ...post, idempotent: false })
        .output(z.string())
        .mutation(({ ctx }) => ctx.once(async () => created)),
    ],
    [
      'two of them',
      /^x calls ctx\.once twice/,
      idempotent.mutation(async ({ ctx }) => {
        await ctx.once(async () => created);
        return ctx.once(async () => created);
      }),
    ],
  ])('%s is a mistake that the first call reports', async (_what, message, operation) => {
    const called = callWith(operation);
    await expect(called).rejects.toThrow(TypeError);
    await expect(called).rejects.toThrow(message);
  });

  test('an error of the handler is reported rather than that it has not created', async () => {
    const operation = idempotent.mutation(() => Promise.reject(new ApiError('not_found')));
    await expect(callWith(operation)).rejects.toMatchObject({ code: 'not_found' });
  });
});

test.each<[RegExp, Parameters<typeof createWith>[0]]>([
  [
    /it has \.errors\(\).*throw an ApiError/,
    procedure
      .errors(({ shape }) => shape)
      .meta(meta)
      .output(z.void())
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
  [
    /201 but does not say whether it is idempotent/,
    procedure
      .meta({ ...post, success: { status: 201, location: () => '/x' } })
      .output(z.string())
      .mutation(() => ''),
  ],
  [
    /declared idempotent but has no output/,
    procedure
      .meta({ ...post, idempotent: true })
      .output(z.void())
      .mutation(() => {}),
  ],
  [/a subscription: let clients repeat a query/, procedure.meta(meta).subscription(async function* () {})],
  [/not a procedure: put the procedures of a router/, router({ nested: procedure.query(() => '') }) as never],
  ...(
    [
      [
        z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]),
        /input is a union: declare an operation for each/,
      ],
      [
        z.discriminatedUnion('kind', [
          z.object({ kind: z.literal('a') }),
          z.object({ kind: z.literal('b') }),
        ]),
        /input is a union: declare an operation for each/,
      ],
      [z.array(z.string()), /input is not an object: make it a member/],
      [z.instanceof(FormData), /input has a member of the type custom: bodies are JSON/],
      [z.object({ file: z.file() }), /input has a member of the type file: bodies are JSON/],
      [z.object({ at: z.date() }), /input has a member of the type date, .*no transformer: use instant/],
      [z.object({ ids: z.array(z.bigint()) }), /input has a member of the type bigint/],
    ] as const
  ).map(([input, message]): [RegExp, Parameters<typeof createWith>[0]] => [
    message,
    procedure
      .meta(post)
      .input(input)
      .output(z.void())
      .mutation(() => {}),
  ]),
  ...(
    [
      [z.object({ at: z.date().nullable() }), /output has a member of the type date/],
      [z.map(z.string(), z.string()), /output has a member of the type map/],
      [z.object({ n: z.string().transform(Number) }), /output has a \.transform\(\), which would be skipped/],
    ] as const
  ).map(([output, message]): [RegExp, Parameters<typeof createWith>[0]] => [
    message,
    procedure
      .meta(meta)
      .output(output)
      .query(() => ({}) as never),
  ]),
])('a procedure that does not qualify is reported at the start: %s', (message, operation) => {
  expect(() => createWith(operation, 'doX')).toThrow(message);
  expect(() => createWith(operation, 'doX')).toThrow(/^doX cannot be an operation/);
});

test.each([
  ['bookId', z.object({ bookId: z.number() })],
  ['bookId', z.object({ bookId: z.number().min(0) }).meta({ id: 'Reference' })],
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
    `doX cannot be an operation: ${member} accepts any number: use integer() or int64() of @animal-store/platform/operations.`,
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
