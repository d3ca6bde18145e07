import { expect, test } from 'vitest';
import { z } from 'zod';
import { create, definition, resources } from '#operations-under-test';
import { formatWindows } from '../../src/contract/plans.js';
import { MAX_PAGE_SIZE } from '../../src/contract/protocol.js';
import type { Window } from '../../src/definition/definition.js';
import { buildDocument } from '../../src/docs/document.js';
import { createErrorResponses } from '../../src/docs/error-responses.js';
import { createHeaders } from '../../src/docs/response-headers.js';
import { mapValues } from '../../src/docs/schemas.js';
import { createErrorTable } from '../../src/errors/error-table.js';
import { createProcedure } from '../../src/operations/builder.js';
import { createChecker, type ListedOperation } from '../support/openapi-checker.js';

// What tools that work from the document alone need to know.

const { document, operations, findResponse } = createChecker(resources);
const { listErrorStatuses } = createErrorResponses(createErrorTable(definition), createHeaders(definition));

test('the document says whose requests are counted together, as LIMITS_PER has it', () => {
  const describe = (limitsPer?: 'key' | 'owner') => {
    const options = { definition, resources, publicUrl: 'http://x', stagingUrl: undefined, limitsPer };
    return (buildDocument(options) as { info: { description: string } }).info.description;
  };
  for (const limitsPer of [undefined, 'key'] as const)
    expect(describe(limitsPer)).toContain('Requests are counted per key, in a window\nof a minute');
  expect(describe('owner')).toContain(
    'Requests of all keys of an owner are counted together, in a window\nof',
  );
});

test.each([
  [['minute', 'day'], 'a minute and one of a day'],
  [['day'], 'a day'],
  [['second', 'hour', 'day'], 'a second, one of an hour, and one of a day'],
])('windows of %j are a sentence', (names, text) => {
  const [first, ...more] = names.map((name) => ({ name, field: name, lengthMs: 1 }));
  const windows = [first as Window, ...more] as const;
  expect(formatWindows({ ...definition, windows })).toBe(text);
});

test("it has the version of the store's interface, and a licence if the store names one", () => {
  const license = { name: 'CC0-1.0', url: 'https://creativecommons.org/publicdomain/zero/1.0/' };
  const { license: _, ...identity } = { license, ...definition.identity, interfaceVersion: '4.5.6' };
  const infoOf = (members: object) =>
    buildDocument({
      definition: { ...definition, identity: { ...identity, ...members } },
      resources,
      publicUrl: 'https://store.example.org',
      stagingUrl: undefined,
    });
  expect(infoOf({})).toMatchObject({ info: { version: '4.5.6' } });
  expect(infoOf({})).not.toHaveProperty('info.license');
  expect(infoOf({ license })).toHaveProperty('info.license', license);
});

test('every integer states its format and its bounds', () => {
  const integers = listNodes(document).filter(({ type }) => type === 'integer');
  expect(integers.length).toBeGreaterThanOrEqual(15);
  for (const schema of integers) {
    const { format, minimum, maximum } = schema as Record<string, number | string>;
    expect([schema, ['int32', 'int64']]).toEqual([schema, expect.arrayContaining([format])]);
    expect([typeof minimum, typeof maximum], JSON.stringify(schema)).toEqual(['number', 'number']);
    if (format === 'int32') expect(maximum).toBeLessThan(2 ** 31);
  }
});

test('a page has at most as many items as a limit can ask for', () => {
  const pages = operations.filter(({ parameters = [] }) => parameters.some(({ name }) => name === 'limit'));
  expect(pages.length).toBeGreaterThanOrEqual(2);
  for (const operation of pages) {
    const { schema = {} } = findResponse(operation, 200)?.content?.['application/json'] ?? {};
    const name = (schema as { $ref: string }).$ref.split('/').at(-1) ?? '';
    expect(document.components.schemas[name]).toMatchObject({ type: 'array', maxItems: MAX_PAGE_SIZE });
  }
});

test('no member of a body has a default, which code generators take for a promise that it is there', () => {
  for (const name of operations.flatMap(listBodies)) {
    const { properties = {} } = document.components.schemas[name] as { properties?: object };
    for (const member of Object.values(properties)) expect(member).not.toHaveProperty('default');
  }
});

test.each([
  [400, 'malformed HTTP'],
  [501, 'an unknown method'],
])('a %i need not have rate limit headers, because %s is not counted', (status) => {
  for (const operation of operations) {
    const { 'X-Request-Id': requestId, ...headers } = findResponse(operation, status)?.headers ?? {};
    const limits = Object.entries(headers).filter(([name]) => name.includes('RateLimit'));
    expect(limits.map(([, header]) => header)).toEqual(
      Array(5).fill(expect.objectContaining({ required: false })),
    );
    expect(requestId).toEqual({ $ref: '#/components/headers/X-Request-Id' });
  }
  expect(document.components.headers['X-Request-Id']?.required).toBe(true);
});

test('a 503 shows each of its causes', () => {
  for (const operation of operations) {
    const { examples = {} } = findResponse(operation, 503)?.content?.['application/json'] ?? {};
    const messages = JSON.stringify(examples);
    expect(messages).toContain('The database cannot serve');
    expect(messages).toContain('is overloaded');
  }
});

test('an Idempotency-Key has no sample value, because the second request that copies it would be a repetition', () => {
  const parameters = operations.flatMap((operation) => operation.parameters ?? []);
  const keys = parameters.filter(({ name }) => name === 'Idempotency-Key');
  expect(keys).not.toEqual([]);
  for (const node of listNodes(keys)) {
    for (const sample of ['example', 'examples', 'default']) expect(node).not.toHaveProperty(sample);
  }
});

function listBodies({ requestBody }: ListedOperation): string[] {
  const { schema } = requestBody?.content?.['application/json'] ?? {};
  return schema === undefined ? [] : [String((schema as { $ref: string }).$ref.split('/').at(-1))];
}

/** Every object in a JSON document, whatever its depth. */
function listNodes(node: unknown): Record<string, unknown>[] {
  if (typeof node !== 'object' || node === null) return [];
  const children = Object.values(node).flatMap(listNodes);
  return Array.isArray(node) ? children : [node as Record<string, unknown>, ...children];
}

test('an operation has the errors that it declares, besides those of its kind', () => {
  const features = {
    isDeprecated: false,
    isIdempotent: false,
    hasBody: false,
    hasPathParameters: false,
    needsScope: true,
  };
  expect(listErrorStatuses(features)).not.toContain(404);
  expect(listErrorStatuses(features, ['not_found'])).toEqual(
    [...listErrorStatuses(features), 404].sort((a, b) => a - b),
  );
});

test('a member that may be left out keeps its description, also where it is that of the enum which it refers to', () => {
  const description = 'How loud it is';
  const loudness = z.enum(['low', 'high']).meta({ id: 'Loudness', description });
  const addNoise = createProcedure()
    .meta({
      openapi: { method: 'POST', path: '/noises', summary: 'Add a noise' },
      stability: 'beta',
      scope: create.scope,
    })
    .input(
      z
        .object({
          same: loudness.default('low').meta({ description }),
          own: loudness.default('low').meta({ description: 'Its own' }),
          none: loudness.default('low'),
        })
        .meta({ id: 'NewNoise', examples: [{}] }),
    )
    .output(z.object({ loudness }).meta({ id: 'Noise', examples: [{ loudness: 'low' }] }))
    .mutation(() => ({ loudness: 'low' as const }));
  const noises = {
    name: 'noises',
    description: 'Noises',
    createStore: () => ({}),
    procedures: { addNoise },
  };
  const built = buildDocument({
    definition,
    resources: [noises],
    publicUrl: 'http://x',
    stagingUrl: undefined,
  }) as typeof document;
  const { NewNoise } = built.components.schemas;
  const { properties } = NewNoise as unknown as { properties: Record<string, { description: string }> };
  const absence = '`"low"` if left out';
  expect(mapValues(properties, (member) => member.description)).toEqual({
    same: `${description}; ${absence}`,
    own: `Its own; ${absence}`,
    none: `${description}; ${absence}`,
  });
  // Its summary, which a page shows above, is not repeated.
  expect(built.paths['/noises']?.post?.description).toBe(`Needs the scope \`${create.scope}\`.`);
});
