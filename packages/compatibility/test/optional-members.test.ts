import { describe, expect, test } from 'vitest';
import type { Document } from '../src/compatibility.js';
import { copy, documentOf, listFindings } from './small-documents.js';

const OK = { 200: { description: 'A lamp' } };
const ID = { name: 'id', in: 'path', required: true, schema: { type: 'string' } };
const SIZE = { name: 'size', in: 'query', schema: { type: 'integer' } };
const JSON_TEXT = { 'application/json': { schema: { type: 'string' } } };

const at = (get: object, rest: object = {}) => documentOf({ paths: { '/lamps/{id}': { get } }, ...rest });

/** What OpenAPI lets a document leave out, put elsewhere, or write in another way. */
const DOCUMENTS: readonly [what: string, document: Document][] = [
  ['no paths', documentOf({})],
  ['no servers', at({ responses: OK })],
  ['an empty list of servers', at({ responses: OK }, { servers: [] })],
  ['a server without a host', at({ responses: OK }, { servers: [{ url: '/v1/' }] })],
  [
    'a server with variables',
    at(
      { responses: OK },
      { servers: [{ url: 'https://{host}:{port}/v1', variables: { host: { default: 'x' } } }] },
    ),
  ],
  ['no responses', at({ operationId: 'getLamp' })],
  ['no name of the operation', at({ responses: OK })],
  ['no components, and security', at({ responses: OK, security: [{ key: [] }] })],
  ['security for all operations', at({ responses: OK }, { security: [{ key: ['read'] }, {}] })],
  [
    'a response without content, and content without a schema',
    at({ responses: { 200: { content: { 'text/csv': {} } } } }),
  ],
  [
    'classes of statuses, and a default',
    at({ responses: { '2XX': OK[200], '4XX': OK[200], default: OK[200] } }),
  ],
  ['an extension among responses', at({ responses: { ...OK, 'x-note': 'none' } })],
  [
    'parameters of the path',
    documentOf({ paths: { '/lamps/{id}': { parameters: [ID], get: { responses: OK } } } }),
  ],
  [
    'a parameter without a schema, and one with content',
    at({
      parameters: [
        { name: 'a', in: 'query' },
        { name: 'b', in: 'query', content: JSON_TEXT },
      ],
    }),
  ],
  [
    'references wherever there may be one',
    documentOf({
      paths: {
        '/lamps/{id}': { $ref: '#/components/pathItems/Lamp' },
        '/lights/{id}': { $ref: '#/paths/~1lamps~1%7Bid%7D' },
      },
      components: {
        pathItems: {
          Lamp: {
            parameters: [{ $ref: '#/components/parameters/Id' }],
            put: { $ref: '#/components/x-operations/put' },
          },
        },
        'x-operations': {
          put: {
            requestBody: { $ref: '#/components/requestBodies/Lamp' },
            responses: {
              200: { $ref: '#/components/responses/Lamp' },
              404: { $ref: '#/components/responses/Lamp' },
            },
          },
        },
        parameters: { Id: { $ref: '#/components/parameters/RealId' }, RealId: ID },
        requestBodies: { Lamp: { content: JSON_TEXT } },
        headers: { Count: { schema: { type: 'integer' } } },
        examples: { gone: { value: { code: 'gone' } } },
        responses: {
          Lamp: {
            headers: { 'X-Count': { $ref: '#/components/headers/Count' } },
            content: { 'application/json': { examples: { gone: { $ref: '#/components/examples/gone' } } } },
          },
        },
      },
    }),
  ],
  [
    'a member that is called $ref, and an example that looks like a reference',
    at({
      'x-stability': 'experimental',
      responses: {
        200: {
          content: {
            'application/json': {
              example: { $ref: '#/nowhere' },
              schema: { properties: { $ref: { type: 'string' }, description: { type: 'string' } } },
            },
          },
        },
      },
    }),
  ],
  ['null for a schema', at({ responses: { 200: { content: { 'text/csv': { schema: null } } } } })],
  ['deprecated without dates', at({ responses: OK, deprecated: true })],
  [
    'a schema that contains itself',
    documentOf({
      paths: {
        '/lamps': {
          get: {
            responses: {
              200: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Tree' } } } },
            },
          },
        },
      },
      components: {
        schemas: {
          Tree: {
            allOf: [
              { properties: { next: { anyOf: [{ $ref: '#/components/schemas/Tree' }, { type: 'null' }] } } },
            ],
          },
        },
      },
    }),
  ],
];

describe('a document compared with itself has no finding, and nothing fails', () => {
  test.each(DOCUMENTS)('%s', (_what, document) => {
    expect(listFindings(document, copy(document))).toEqual([]);
  });
});

describe('what a document leaves out, or writes elsewhere, is compared all the same', () => {
  const change = (before: Document, edit: (document: Document) => object) =>
    listFindings(before, { ...before, ...edit(copy(before)) });
  const paths = (parameters: object[], responses: object = OK) => ({
    paths: { '/lamps/{id}': { parameters, get: { responses } } },
  });

  test('a server that is named where none was does not change the paths, unless it has one', () => {
    const document = at({ responses: OK });
    expect(change(document, () => ({ servers: [{ url: 'https://lamps.example.org/' }] }))).toEqual([]);
    expect(change(document, () => ({ servers: [{ url: 'https://lamps.example.org/v2' }] }))).toEqual([
      'operation-kept: GET /lamps/{id}: it is gone, and was not deprecated',
    ]);
  });

  test('a parameter of the path, which the operation may replace', () => {
    const document = documentOf(paths([ID, SIZE]));
    expect(change(document, () => paths([ID]))).toEqual([
      'input-kept: GET /lamps/{id}: query parameter size is gone',
    ]);
    const own = {
      paths: {
        '/lamps/{id}': {
          parameters: [ID, { ...SIZE, required: true }],
          get: { parameters: [SIZE], responses: OK },
        },
      },
    };
    expect(change(document, () => own)).toEqual([]);
  });

  test('a status that its class stands for', () => {
    const classes = documentOf(paths([ID], { '2XX': { description: 'A lamp' } }));
    expect(change(classes, () => paths([ID], { '2XX': OK[200], 201: OK[200] }))).toEqual([]);
    expect(change(documentOf(paths([ID])), () => paths([ID], { '2XX': OK[200] }))).toEqual([
      'statuses-kept: GET /lamps/{id}: 2XX is new',
    ]);
    expect(change(documentOf(paths([ID])), () => paths([ID], { default: OK[200] }))).toEqual([
      'statuses-kept: GET /lamps/{id}: 200 is gone',
    ]);
  });

  test('a deprecation without dates is none that the next document has to date, but a new one is', () => {
    const document = at({ responses: OK });
    const deprecated = at({ responses: OK, deprecated: true });
    expect(listFindings(deprecated, deprecated)).toEqual([]);
    expect(listFindings(document, deprecated)).toHaveLength(1);
    expect(listFindings(deprecated, documentOf({}))).toEqual([
      'notice-given: GET /lamps/{id}: it is gone, and had no x-sunset',
    ]);
  });

  test('a scope that the scheme lists, and no operation needs, is free; another kind of key is not', () => {
    const scheme = (type: object) => ({
      components: { securitySchemes: { key: type } },
      security: [{ key: ['read'] }],
    });
    const flows = (...scopes: string[]) => ({
      type: 'oauth2',
      flows: { implicit: { scopes: Object.fromEntries(scopes.map((each) => [each, ''])) } },
    });
    const document = at({ responses: OK }, scheme(flows('read')));
    expect(change(document, () => scheme(flows('read', 'write')))).toEqual([]);
    expect(change(document, () => scheme({ type: 'apiKey', in: 'header', name: 'X-Key' }))).toEqual([
      'access-kept: GET /lamps/{id}: {"key":["read"]} is no longer enough',
    ]);
  });
});

describe('a document that cannot be compared is refused with what is wrong with it', () => {
  const refer = (reference: string) => at({ parameters: [{ $ref: reference }] });
  test.each<[what: string, document: unknown, message: string]>([
    ['Swagger 2.0', { swagger: '2.0', paths: {} }, 'not an OpenAPI 3 document'],
    ['null', null, 'not an OpenAPI 3 document'],
    [
      'a list that is none',
      at({ requestBody: { content: { 'text/csv': { schema: { allOf: {} } } } } }),
      'GET /lamps/{id} cannot be compared',
    ],
    [
      'a reference to nothing',
      refer('#/components/parameters/Id'),
      '#/components/parameters/Id is not in the document',
    ],
    ['a reference to another file', refer('./id.json'), './id.json is not in the document: bundle'],
    ['a reference to itself', refer('#/paths/~1lamps~1{id}/get/parameters/0'), 'refers to itself'],
  ])('%s', (_what, document, message) => {
    expect(() => listFindings(document as Document, document as Document)).toThrow(message);
  });
});
