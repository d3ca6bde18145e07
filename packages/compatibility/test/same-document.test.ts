import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Document } from '../src/compatibility.js';
import { copy, documentOf, listFindings } from './small-documents.js';

const NAMES = ['Lamp', 'Bulb', 'Shade'];
const name = fc.constantFrom(...NAMES);
const types = fc.constantFrom('string', 'integer', 'number', 'boolean', 'null', 'object', 'array');
const optional = { requiredKeys: [] };

/** Some keywords, any beside any other. */
const { schema } = fc.letrec<{ schema: object | boolean }>((tie) => {
  const inner = tie('schema');
  const list = fc.array(inner, { maxLength: 3 });
  const member = fc.constantFrom('code', 'id', '$ref', 'description');
  const keywords: Record<string, fc.Arbitrary<unknown>> = {
    $ref: name.map((each) => refer(each).$ref),
    type: fc.oneof(types, fc.uniqueArray(types, { minLength: 1, maxLength: 3 })),
    nullable: fc.boolean(),
    enum: fc.array(fc.constantFrom('a', 'b', 1, null, { a: [1] })),
    const: fc.constantFrom('a', null),
    default: fc.constantFrom('a', null, [1]),
    description: fc.constant('`1` if left out'),
    minimum: fc.integer(),
    exclusiveMinimum: fc.oneof(fc.boolean(), fc.integer()),
    minItems: fc.nat(1),
    uniqueItems: fc.boolean(),
    pattern: fc.constantFrom('^a', 'a$'),
    readOnly: fc.boolean(),
    writeOnly: fc.boolean(),
    properties: fc.dictionary(member, inner, { maxKeys: 2 }),
    required: fc.subarray(['code', 'id', 'other']),
    ...{ additionalProperties: inner, items: inner, not: inner, allOf: list, anyOf: list, oneOf: list },
  };
  const some = Object.entries(keywords).map(([keyword, value]) => value.map((each) => ({ [keyword]: each })));
  const any = fc.array(fc.oneof(...some), { maxLength: 4 }).map((parts) => Object.assign({}, ...parts));
  return { schema: fc.oneof({ maxDepth: 4, depthSize: 'small' }, name.map(refer), fc.boolean(), any) };
});

function refer(to: string) {
  return { $ref: `#/components/schemas/${to}` };
}

const media = fc.record(
  { schema, examples: fc.constant({ gone: { value: { code: 'gone' } }, none: { value: null } }) },
  optional,
);
const content = fc.dictionary(fc.constantFrom('application/json', 'text/csv'), media);
const header = fc.record({ schema, required: fc.boolean() }, optional);
const response = fc.record(
  { content, headers: fc.dictionary(fc.constantFrom('Link', 'ETag'), header) },
  optional,
);
const parameter = fc.record(
  {
    name: fc.constantFrom('size', 'X-Size'),
    in: fc.constantFrom('query', 'header', 'path', 'cookie'),
    required: fc.boolean(),
    style: fc.constantFrom('form', 'simple'),
    explode: fc.boolean(),
    schema,
    content,
  },
  { requiredKeys: ['name', 'in'] },
);
const security = fc.array(
  fc.dictionary(fc.constantFrom('key', 'login'), fc.array(fc.constantFrom('read', 'write'))),
);
const operation = fc.record(
  {
    operationId: fc.string(),
    deprecated: fc.boolean(),
    'x-stability': fc.constantFrom('stable', 'beta', 'experimental', 'other'),
    'x-sunset': fc.constantFrom('2030-01-01T00:00:00Z', 'soon'),
    'x-deprecated-since': fc.constantFrom('2026-01-01T00:00:00Z', 'once'),
    security,
    parameters: fc.array(parameter),
    requestBody: fc.record({ content, required: fc.boolean() }, optional),
    responses: fc.dictionary(fc.constantFrom('200', '2XX', '404', '410', 'default'), response),
  },
  optional,
);
const item = fc.record({ get: operation, post: operation, parameters: fc.array(parameter) }, optional);
const document = fc
  .record(
    {
      servers: fc.array(
        fc.record({ url: fc.constantFrom('/', 'https://lamps.example.org/v1', 'https://{x}/v1', 'v2') }),
      ),
      paths: fc.dictionary(fc.constantFrom('/lamps', '/lamps/{id}'), item),
      security,
      securitySchemes: fc.dictionary(fc.constantFrom('key', 'login'), fc.constant({ type: 'http' })),
      schemas: fc.record(
        Object.fromEntries(NAMES.map((each) => [each, schema.filter((one) => !isReference(one))])),
      ),
    },
    { requiredKeys: ['schemas'] },
  )
  .map(({ schemas, securitySchemes, ...rest }) =>
    documentOf({ ...rest, components: { schemas, ...(securitySchemes && { securitySchemes }) } }),
  );

/** A reference that leads to a reference may lead to itself, which no document may have. */
function isReference(value: unknown): boolean {
  return typeof value !== 'object' || Object.hasOwn(value as object, '$ref');
}

test('a document compared with itself never has a finding', () => {
  fc.assert(
    fc.property(document as fc.Arbitrary<Document>, (each) => {
      expect(listFindings(each, copy(each))).toEqual([]);
    }),
  );
});
