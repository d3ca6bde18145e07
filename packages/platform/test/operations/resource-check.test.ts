import { expect, test } from 'vitest';
import { z } from 'zod';
import { definition, list, resources } from '#operations-under-test';
import { createProcedure, type OperationMeta } from '../../src/operations/builder.js';
import { checkResources, checkStore } from '../../src/operations/resource-check.js';

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

test.each(['limits', 'now', 'rehearsal', '__proto__', 'constructor', 'two words', ''])(
  'a resource that handlers could not find in ctx ends the start: "%s"',
  (name) => {
    const resource = { ...resourceWith({}), name };
    expect(() => checkResources(definition, [...resources, resource])).toThrow(
      /: a resource is named "?[^,]*"?, but /,
    );
  },
);

test.each(['then', 'call', 'two words', 'list-all', 'List', 'a/b', 'toString', 'x'.repeat(65)])(
  'an operation whose name cannot be one ends the start: "%s"',
  (name) => {
    const { doX, ...resource } = { ...resourceWith({}), doX: resourceWith({}).procedures.doX };
    const named = { ...resource, procedures: { [name]: doX } };
    expect(() => checkResources(definition, [...resources, named])).toThrow(
      `an operation is named "${name}", but `,
    );
  },
);

test('an error that tRPC does not have, and a code that nobody has, end the start', () => {
  const [code = '', error] = Object.entries(definition.errors)[0] ?? [];
  const errors = {
    ...definition.errors,
    [code]: { ...error, trpcCode: 'ODD' },
  } as unknown as typeof definition.errors;
  expect(() => checkResources({ ...definition, errors }, resources)).toThrow(
    `errors.${code}.trpcCode is ODD, which tRPC does not have`,
  );
  expect(() => checkResources(definition, [...resources, resourceWith({ errors: ['no_code'] })])).toThrow(
    'the errors of doX have no_code, which is no code',
  );
});

class Shelf {
  read() {}
}

test.each([
  [new Shelf(), 'it is something else'],
  [null, 'it is something else'],
  [() => {}, 'it is something else'],
  [{ read() {}, shelves: { read() {} } }, 'its member shelves is something else'],
])(
  'a store that is no flat object of functions is refused by the name of its resource: %o',
  (store, what) => {
    expect(() => checkStore('shelves', store)).toThrow(
      `The store of the resource shelves must be a flat object of functions, but ${what}`,
    );
  },
);
