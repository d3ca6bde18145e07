import { expect, test } from 'vitest';
import { z } from 'zod';
import { definition, list, resources } from '#operations-under-test';
import { createProcedure, type OperationMeta } from '../../src/operations/builder.js';
import { checkResources } from '../../src/operations/resource-check.js';

/** A resource with one operation. */
const resourceWith = (more: Partial<OperationMeta>) => ({
  name: 'extras',
  description: 'Extras',
  createStore: () => ({}),
  procedures: {
    doX: createProcedure()
      .meta({
        openapi: { method: 'GET', path: '/x', summary: 'X' },
        stability: 'beta',
        scope: list.scope,
        ...more,
      })
      .output(z.void())
      .query(() => {}),
  },
});

test('a main operation that the store does not have is refused with the names of those that it has', () => {
  expect(() => checkResources(definition, resources)).not.toThrow();
  const { mainOperation } = definition.identity;
  const others = resources.filter(({ procedures }) => !Object.hasOwn(procedures, mainOperation));
  expect(others).not.toEqual([]);
  const [name = ''] = Object.keys(others[0]?.procedures ?? {});
  expect(() => checkResources(definition, others)).toThrow(
    `identity.mainOperation is ${mainOperation}, but the operations are ${name}`,
  );
});

test.each([
  [{ mainPath: '/nowhere' }, `identity.mainPath is /nowhere, but the path of ${list.name} is `],
  [{ mainTable: 'nothing' }, 'identity.mainTable is nothing, but identity.grants are for '],
])('an identity with %j is refused by the name of the member', (members, message) => {
  const identity = { ...definition.identity, ...members };
  expect(() => checkResources({ ...definition, identity }, resources)).toThrow(message);
});

test.each([
  [
    { scope: 'nobody:reads' },
    `the scope of doX is nobody:reads, which is none of ${definition.scopes.join(', ')}, nor any`,
  ],
  [{ cost: 61 }, 'the cost of doX is 61, and not a whole number from 1 to 60'],
  [{ cost: 0.5 }, 'the cost of doX is 0.5, and not a whole number from 1 to 60'],
])('an operation with %j, which the definition does not allow, ends the start', (meta, message) => {
  expect(() => checkResources(definition, [...resources, resourceWith(meta)])).toThrow(message);
});
