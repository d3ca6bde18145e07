import { IDENTITY } from '@animal-store/definition/identity';
import { expect, test } from 'vitest';
import { resources } from '#operations-under-test';
import { checkIdentity } from '../../src/operations/identity.js';

test('an identity that names an operation which the store does not have is refused with the names of those that it has', () => {
  expect(() => checkIdentity(resources)).not.toThrow();
  const others = resources.filter(({ procedures }) => !Object.hasOwn(procedures, IDENTITY.mainOperation));
  expect(others).not.toEqual([]);
  const [name = ''] = Object.keys(others[0]?.procedures ?? {});
  expect(() => checkIdentity(others)).toThrow(
    `mainOperation is ${IDENTITY.mainOperation}, but the operations are ${name}`,
  );
});
