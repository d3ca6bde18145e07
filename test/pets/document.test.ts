import { describe, expect, test } from 'vitest';
import { createChecker } from '../../packages/platform/test/support/openapi-checker.js';
import { newPet } from '../../src/pets/schema.js';
import { resources } from '../../src/router.js';

const { document, operations, findOperation, findProblems } = createChecker(resources);

/** docs/openapi.json may contain further operations; reviewing its diff catches unintended ones. */
const SPECIFIED_OPERATIONS = [
  ['GET /pets', 'listPets', 'stable', 'pets:read', '200 400 401 403 405 429 500 501 503'],
  ['POST /pets', 'createPet', 'stable', 'pets:write', '201 400 401 403 405 409 413 415 422 429 500 501 503'],
  ['GET /pets/{petId}', 'getPet', 'stable', 'pets:read', '200 400 401 403 404 405 410 429 500 501 503'],
  ['GET /store/orders', 'listOrders', 'experimental', 'orders:read', '200 400 401 403 405 429 500 501 503'],
];
const SPECIFIED_SCHEMAS = ['Error', 'NewPet', 'Order', 'OrderStatus', 'Orders', 'Pet', 'PetStatus', 'Pets'];

test('the specified operations have their paths, statuses, stability and scopes', () => {
  const found = operations.map(
    ({ method, path, operationId, responses, security, 'x-stability': stability }) => [
      `${method} ${path}`,
      operationId,
      stability,
      security.flatMap(Object.values).join(' '),
      Object.keys(responses).join(' '),
    ],
  );
  expect(found).toEqual(expect.arrayContaining(SPECIFIED_OPERATIONS));
});

test('the specified schemas are there, and their ids are positive', () => {
  const { schemas } = document.components;
  expect(Object.keys(schemas)).toEqual(expect.arrayContaining(SPECIFIED_SCHEMAS));
  for (const name of ['Pet', 'Order'])
    expect(schemas[name]).toMatchObject({ properties: { id: { minimum: 1 } } });
});

test('no key without a scope may call an operation on animals or orders', () => {
  const own = operations.filter(({ tags }) => ['Pets', 'Orders'].includes(`${tags}`));
  expect(own.length).toBeGreaterThanOrEqual(SPECIFIED_OPERATIONS.length);
  for (const { operationId, method, security, tags } of own) {
    const scope = `${tags}`.toLowerCase() + (method === 'GET' ? ':read' : ':write');
    expect([operationId, security]).toEqual([operationId, [{ bearerAuth: [scope] }]]);
  }
});

test('getPet is deprecated until its removal', () => {
  expect(findOperation('getPet')).toMatchObject({ deprecated: true, 'x-sunset': '2030-12-05T00:00:00Z' });
});

test('a status may be left out, and the document says in words what it is then', () => {
  expect(document.components.schemas.NewPet).toMatchObject({
    required: ['name', 'categoryId'],
    properties: { status: { description: expect.stringContaining('`"available"` if left out') } },
  });
});

test('what a name must not contain is said in words where a pattern does not say it, and refused by the service', () => {
  for (const name of ['a\0', '\0', '\ud800'])
    expect(newPet.safeParse({ name, categoryId: 1 }).success).toBe(false);
  expect(document.components.schemas.NewPet).toMatchObject({
    properties: { name: { description: expect.stringMatching(/without NUL or half of a surrogate pair/) } },
  });
});

describe('the document and the service agree on what a NewPet is', () => {
  const { NewPet = {} } = document.components.schemas;
  const names = [
    'Rex',
    ' Rex ',
    '\u00a0a',
    '\ufeff',
    '🐈'.repeat(200),
    '🐈'.repeat(201),
    'x'.repeat(201),
    'a\nb',
  ];
  const blanks = [
    '',
    ' ',
    '\t\n\v\f\r',
    '\u0085',
    '\u00a0',
    '\u1680',
    '\u2000\u200a',
    '\u2028\u2029\u202f\u205f\u3000',
  ];
  const numbers = [0, -1, 1.5, 2 ** 53 - 1, 2 ** 53, -(2 ** 53), '3', true, null, [], ''];
  test.each([
    ...[...names, ...blanks, 3, null].map((name) => ({ name, categoryId: 1 })),
    ...numbers.map((categoryId) => ({ name: 'Rex', categoryId })),
    ...['sold', 'lost', '', null].map((status) => ({ name: 'Rex', categoryId: 1, status })),
    { name: 'Rex' },
    { categoryId: 1 },
    { name: 'Rex', categoryId: 1, color: 'red' },
    [],
    null,
  ])('%j', (value) => {
    expect(findProblems(NewPet, value) === '').toBe(newPet.safeParse(value).success);
  });
});
