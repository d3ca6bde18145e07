import { post, toolCall } from '@animal-store/platform/testing';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { definition as ownDefinition, resources } from '#operations-under-test';
import type { Resource } from '../../src/operations/resource.js';
import { defineStore } from '../../src/store/define-store.js';
import { useService } from '../support/test-service.js';

const sailErrors = {
  ...ownDefinition.errors,
  sail_in_use: {
    status: 409,
    trpcCode: 'CONFLICT',
    message: 'The sail is in a locker.',
    description: 'something refers to the sail',
  },
} as const;
const definition = { ...ownDefinition, errors: sailErrors };
const { ApiError, createProcedure } = defineStore(definition);

const CODE = 'sail_in_use';
const BODY = { code: CODE, message: 'The sail is in a locker.', status: 409 };

const sails: Resource<object> = {
  name: 'sails',
  description: 'What drives the boats',
  createStore: () => ({}),
  procedures: {
    packSail: createProcedure()
      .meta({
        openapi: { method: 'POST', path: '/sails', summary: 'Pack a sail' },
        stability: 'beta',
        scope: 'any',
        idempotent: false,
        errors: [CODE],
      })
      .input(z.object({ name: z.string() }))
      .output(z.object({ name: z.string() }))
      .mutation(() => {
        throw new ApiError(CODE);
      }),
  },
};

const { call } = useService({ definition, resources: [...resources, sails] });

const pack = post({ name: 'Jib' });

test('an error code of the store is answered over all protocols, as it is defined', async () => {
  const rest = await call('/v1/sails', pack);
  expect([rest.status, rest.body]).toEqual([409, BODY]);
  const { body } = await call('/trpc/packSail', pack);
  expect(body.error.data).toMatchObject({ code: 'CONFLICT', httpStatus: 409, error: BODY });
  const { result } = (await call('/mcp', toolCall('packSail', { name: 'Jib' }))).body;
  expect(result).toMatchObject({ isError: true, structuredContent: BODY });
});

test('it is rehearsed like any other', async () => {
  const { status, body, headers } = await call(
    '/v1/sails',
    post({ name: 'Jib' }, { prefer: `error=${CODE}` }),
  );
  expect([status, body, headers.get('preference-applied')]).toEqual([409, BODY, `error=${CODE}`]);
});

test('the document has it for the operations that name it, and among the codes that there are', async () => {
  const { paths, components } = (await call('/openapi.json', { key: null })).body;
  const codesOf = (operation: { responses: Record<string, { $ref?: string }> }) => {
    const { $ref, ...response } = operation.responses['409'] ?? {};
    return JSON.stringify($ref === undefined ? response : components.responses[$ref.split('/').at(-1) ?? '']);
  };
  expect(codesOf(paths['/sails'].post)).toContain(CODE);
  for (const [path, operations] of Object.entries<object>(paths)) {
    if (path === '/sails') continue;
    for (const operation of Object.values(operations)) expect(codesOf(operation)).not.toContain(CODE);
  }
  expect(components.schemas.Error.properties.code.anyOf[0].enum).toContain(CODE);
});
