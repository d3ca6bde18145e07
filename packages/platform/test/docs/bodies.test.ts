import { expect, test } from 'vitest';
import { z } from 'zod';
import { list } from '#operations-under-test';
import { createProcedure } from '../../src/operations/builder.js';
import { int64, integer, text } from '../../src/operations/input.js';
import { createChecker } from '../support/openapi-checker.js';

const procedure = createProcedure();
const describeOperations = (first: z.ZodType, second: z.ZodType) => {
  const add = (path: `/${string}`, input: z.ZodType) =>
    procedure
      .meta({ openapi: { method: 'PATCH', path, summary: 'Change' }, stability: 'beta', scope: list.scope })
      .input(input)
      .output(z.void())
      .mutation(() => {});
  const procedures = { changeA: add('/a/{id}', first), changeB: add('/b/{id}', second) };
  const resource = { name: 'test', description: 'Test', createStore: () => ({}) };
  return createChecker([{ ...resource, procedures }]).document.components.schemas;
};
const members = { id: int64(), note: text(1, 9).optional() };
const change = z.object(members);

test('a body keeps the override of its schema, be it an object or a function', () => {
  const schemas = describeOperations(
    change.meta({ id: 'A', override: { minProperties: 1 } }),
    change.meta({ id: 'B', override: ({ jsonSchema }) => Object.assign(jsonSchema, { minProperties: 2 }) }),
  );
  expect(schemas.A).toMatchObject({ minProperties: 1, properties: { note: { maxLength: 9 } } });
  expect(schemas.A).not.toHaveProperty('properties.id');
  expect(schemas.B).toMatchObject({ minProperties: 2 });
});

test('two operations may share a body, but not the id of different ones', () => {
  const shared = change.meta({ id: 'Change' });
  expect(describeOperations(shared, shared)).toHaveProperty('Change');
  const other = z.object({ ...members, size: integer(1, 9) }).meta({ id: 'Change' });
  expect(() => describeOperations(shared, other)).toThrow(
    'changeA and changeB have different bodies with the id Change',
  );
});
