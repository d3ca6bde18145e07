import { describe, expect, test } from 'vitest';
import { documentWith, listFindings } from './small-documents.js';

const SCHEMAS = {
  Lamp: { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] },
  Bulb: { type: 'object', properties: { watts: { type: 'number' } }, required: ['watts'] },
};
const LAMP = { $ref: '#/components/schemas/Lamp' };
const BULB = { $ref: '#/components/schemas/Bulb' };

const compare = (direction: 'request' | 'response', before: unknown, after: unknown) =>
  listFindings(documentWith(direction, before, SCHEMAS), documentWith(direction, after, SCHEMAS));

/** Pairs of schemas that allow the same values. */
const SAME: readonly [what: string, one: unknown, other: unknown][] = [
  ['nullable', { type: 'string', nullable: true }, { type: ['string', 'null'] }],
  [
    'nullable, with values',
    { type: 'string', enum: ['a'], nullable: true },
    { type: ['string', 'null'], enum: ['a', null] },
  ],
  ['nullable, of a reference', { allOf: [LAMP], nullable: true }, { anyOf: [LAMP, { type: 'null' }] }],
  [
    'nullable, with alternatives',
    { oneOf: [LAMP, BULB], nullable: true },
    { oneOf: [{ type: 'null' }, BULB, LAMP] },
  ],
  [
    'an excluded bound',
    { type: 'number', minimum: 0, exclusiveMinimum: true },
    { type: 'number', exclusiveMinimum: 0 },
  ],
  ['a constant', { const: 'a' }, { type: 'string', enum: ['a'] }],
  ['a type that follows', { properties: { id: {} } }, { type: 'object', properties: { id: {} } }],
  ['one part of allOf', { allOf: [LAMP] }, LAMP],
  [
    'parts of allOf',
    { allOf: [LAMP, BULB] },
    {
      type: 'object',
      properties: { id: { type: 'integer' }, watts: { type: 'number' } },
      required: ['watts', 'id'],
    },
  ],
  [
    'a part beside allOf',
    { allOf: [{ type: 'integer', minimum: 1 }], maximum: 5 },
    { type: 'integer', minimum: 1, maximum: 5 },
  ],
  [
    'a member in two parts of allOf that differs in a text',
    {
      allOf: [
        { properties: { id: { type: 'string', example: '1' } } },
        { properties: { id: { type: 'string', description: 'A' } } },
      ],
    },
    { properties: { id: { type: 'string' } } },
  ],
  [
    'values that are described one by one',
    {
      oneOf: [
        { const: 'a', title: 'A' },
        { enum: ['b'], description: 'B' },
      ],
    },
    { type: 'string', enum: ['a', 'b'] },
  ],
  ['one alternative', { oneOf: [LAMP] }, LAMP],
  [
    'types and alternatives',
    { type: ['string', 'integer'] },
    { anyOf: [{ type: 'integer' }, { type: 'string' }] },
  ],
  [
    'what stands beside alternatives',
    {
      type: 'object',
      properties: { id: { type: 'integer' } },
      anyOf: [{ required: ['id'] }, { required: ['b'] }],
    },
    {
      anyOf: [
        { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] },
        { type: 'object', properties: { id: { type: 'integer' } }, required: ['b'] },
      ],
    },
  ],
  ['what excludes nothing', { type: 'array', minItems: 0, uniqueItems: false, items: {} }, { type: 'array' }],
  [
    'any other members',
    { type: 'object', additionalProperties: true },
    { type: 'object', additionalProperties: {} },
  ],
  ['true', true, {}],
  [
    'what is for readers',
    { type: 'string', title: 'A', example: 'a', 'x-order': 1 },
    { type: 'string', xml: { name: 'a' }, externalDocs: {} },
  ],
  ['objects as values', { enum: [{ a: 1 }] }, { enum: [{ a: 1 }] }],
];

describe('schemas that allow the same have no finding, in either order', () => {
  test.each(SAME)('%s', (_what, one, other) => {
    for (const direction of ['request', 'response'] as const) {
      expect(compare(direction, one, other)).toEqual([]);
      expect(compare(direction, other, one)).toEqual([]);
    }
  });
});

/** Pairs of which the second allows more: a request may become so, and a response may not. */
const WIDER: readonly [what: string, narrow: unknown, wide: unknown][] = [
  ['nullable', { type: 'string' }, { type: 'string', nullable: true }],
  ['nullable, of a reference', LAMP, { allOf: [LAMP], nullable: true }],
  ['another alternative', { oneOf: [LAMP] }, { oneOf: [LAMP, BULB] }],
  ['an alternative to a type', { type: 'string' }, { anyOf: [{ type: 'string' }, BULB] }],
  ['another constant', { oneOf: [{ const: 'a' }] }, { oneOf: [{ const: 'a' }, { const: 'b' }] }],
  ['a part of allOf', { allOf: [LAMP, { type: 'object', maxProperties: 3, minProperties: 2 }] }, LAMP],
  [
    'within an alternative',
    { anyOf: [LAMP, { type: 'array', items: { type: 'integer' } }] },
    { anyOf: [LAMP, { type: 'array', items: { type: 'number' } }] },
  ],
  [
    'the values of a map',
    { additionalProperties: { type: 'integer' } },
    { additionalProperties: { type: 'number' } },
  ],
  ['an included bound', { type: 'number', minimum: 0, exclusiveMinimum: true }, { type: 'number' }],
  ['no value at all', false, { type: 'string' }],
];

describe('of schemas that allow more or less, a request may only become wider, and a response narrower', () => {
  test.each(WIDER)('%s', (_what, narrow, wide) => {
    expect(compare('request', narrow, wide)).toEqual([]);
    expect(compare('response', wide, narrow)).toEqual([]);
    expect(compare('request', wide, narrow)).not.toEqual([]);
    expect(compare('response', narrow, wide)).not.toEqual([]);
  });
});

test('of alternatives without a name, the one at the same place is the other version', () => {
  const lamps = (...types: string[]) => ({
    oneOf: types.map((type) => ({ type: 'object', properties: { id: { type } }, required: ['id'] })),
  });
  expect(compare('response', lamps('integer', 'string'), lamps('integer', 'boolean'))).toEqual([
    'output-expected: POST /lamps: response 200.id: type is "boolean", was "string"',
  ]);
});

test('members of a response in allOf, and of an alternative, are named where they change', () => {
  const text = { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] };
  const after = documentWith('response', { anyOf: [{ allOf: [LAMP] }, { type: 'null' }] }, { Lamp: text });
  const before = documentWith('response', { anyOf: [{ allOf: [LAMP] }, { type: 'null' }] }, SCHEMAS);
  expect(listFindings(before, after)).toEqual([
    'output-expected: POST /lamps: response 200.id: type is "string", was "integer"',
  ]);
});

test('a member is compared in the direction in which it is sent', () => {
  const lamp = (member: object) => ({ type: 'object', properties: { id: { type: 'integer', ...member } } });
  expect(compare('request', lamp({ readOnly: true }), { type: 'object', properties: {} })).toEqual([]);
  expect(compare('response', lamp({ writeOnly: true }), { type: 'object', properties: {} })).toEqual([]);
  expect(compare('request', lamp({}), lamp({ readOnly: true }))).toEqual([
    'input-kept: POST /lamps: request body.id is gone',
  ]);
});

describe('values that a document leaves open', () => {
  const closed = (...values: string[]) => ({ type: 'string', enum: values });
  const open = (...values: string[]) => ({ anyOf: [closed(...values), { type: 'string' }] });

  test('may grow in a response, and stay open', () => {
    expect(compare('response', open('a'), open('a', 'b'))).toEqual([]);
    expect(compare('response', open('a', 'b'), open('a'))).toEqual([]);
    expect(compare('response', closed('a'), closed('a', 'b'))).toHaveLength(1);
    expect(compare('response', open('a'), closed('a'))).toEqual([
      'responses-open: POST /lamps: response 200 excludes other values',
    ]);
  });

  test('are not open yet where clients know a closed list', () => {
    expect(compare('response', closed('a'), open('a'))).toEqual([
      'output-expected: POST /lamps: response 200 can be string',
    ]);
  });
});
