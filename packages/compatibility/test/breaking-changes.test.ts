import { describe, expect, test } from 'vitest';
import { compareDocuments } from '../src/compatibility.js';
import { RULES, type RuleId } from '../src/rules.js';
import {
  all,
  append,
  CREATE,
  compareAfter,
  deprecate,
  drop,
  type Edit,
  GET,
  LIST,
  NEW_PET,
  NOTE,
  PET,
  RELEASE_TIME,
  RELEASED,
  rename,
  SCHEMAS,
  set,
  TAG,
} from './document-edits.js';

const BREAKING: readonly [what: string, edit: Edit, ...rules: RuleId[]][] = [
  // Operations
  ['an operation is removed', drop(CREATE), 'operation-kept'],
  ['a path is renamed', rename('paths /pets', '/animals'), 'operation-kept'],
  ['a method changes', rename(CREATE, 'put'), 'operation-kept'],
  ['the name of an operation changes', set(`${LIST} operationId`, 'findPets'), 'operation-kept'],
  [
    'the prefix of all paths changes',
    set('servers 0 url', 'https://store.example.org/v2'),
    'operation-kept',
    'notice-given',
  ],
  ['a stable operation becomes beta', set(`${LIST} x-stability`, 'beta'), 'stability-kept'],
  ['the mark of a stable operation is left out', drop(`${LIST} x-stability`), 'stability-kept'],
  ['a stable operation becomes experimental', set(`${LIST} x-stability`, 'experimental'), 'stability-kept'],
  ['an operation needs a scope', set(`${LIST} security`, [{ bearerAuth: ['pets:admin'] }]), 'access-kept'],
  [
    'an operation needs another kind of key',
    set('components securitySchemes bearerAuth scheme', 'basic'),
    'access-kept',
  ],
  // Deprecation
  ['a deprecated operation is removed before its date', drop(GET), 'notice-given'],
  ['an operation is deprecated without dates', set(`${LIST} deprecated`, true), 'notice-given'],
  [
    'the notice is too short',
    deprecate(LIST, '2027-03-01T00:00:00Z', '2028-02-29T00:00:00Z'),
    'notice-given',
  ],
  [
    'a deprecation is dated back',
    deprecate(LIST, '2026-01-01T00:00:00Z', '2027-06-01T00:00:00Z'),
    'notice-given',
  ],
  ['a removal is brought forward', set(`${GET} x-sunset`, '2029-12-05T00:00:00Z'), 'removal-not-advanced'],
  ['the dates of a deprecation disappear', drop(`${GET} x-sunset`), 'notice-given'],
  // Requests
  ['an optional parameter is removed', drop(`${LIST} parameters 1`), 'input-kept'],
  ['a header of the request is removed', drop(`${CREATE} parameters 0`), 'input-kept'],
  [
    'a required parameter is added',
    append(`${LIST} parameters`, { ...TAG, required: true }),
    'input-optional',
  ],
  ['a parameter becomes required', set(`${LIST} parameters 0 required`, true), 'input-optional'],
  ["a parameter's maximum falls", set(`${LIST} parameters 0 schema maximum`, 50), 'input-accepted'],
  ["a parameter's minimum rises", set(`${LIST} parameters 0 schema minimum`, 2), 'input-accepted'],
  ["a parameter's style changes", set(`${LIST} parameters 0 style`, 'pipeDelimited'), 'input-accepted'],
  ['a parameter is no longer exploded', set(`${LIST} parameters 0 explode`, false), 'input-accepted'],
  ["a parameter's default changes", set(`${LIST} parameters 0 schema default`, 50), 'default-kept'],
  [
    'a required member is added',
    all(set(`${NEW_PET} properties note`, NOTE), append(`${NEW_PET} required`, 'note')),
    'input-optional',
  ],
  ['a member becomes required', append(`${NEW_PET} required`, 'status'), 'input-optional'],
  ['a member of the request is removed', drop(`${NEW_PET} properties status`), 'input-kept'],
  ["a member's type changes", set(`${NEW_PET} properties categoryId type`, 'string'), 'input-accepted'],
  [
    "a member's default changes",
    set(`${NEW_PET} properties status description`, '`"pending"` if left out'),
    'default-kept',
  ],
  ['a name must be longer', set(`${NEW_PET} properties name minLength`, 2), 'input-accepted'],
  ['a number gets a further bound', set(`${NEW_PET} properties categoryId multipleOf`, 2), 'input-accepted'],
  ["a request's pattern changes", set(`${NEW_PET} properties name pattern`, '^[a-z]+$'), 'input-accepted'],
  ["a request's format narrows", set(`${NEW_PET} properties categoryId format`, 'int32'), 'input-accepted'],
  ['unknown members are rejected', set(`${NEW_PET} additionalProperties`, false), 'input-accepted'],
  ['a value is removed', drop(`${SCHEMAS} PetStatus enum 2`), 'input-accepted'],
  [
    'the media type of a request changes',
    rename(`${CREATE} requestBody content application/json`, 'application/xml'),
    'input-kept',
  ],
  // Responses
  ['a member of the response is removed', drop(`${PET} properties status`), 'output-kept'],
  ['a member of the response becomes optional', drop(`${PET} required 3`), 'output-kept'],
  [
    'a response may be null',
    set(`${PET} properties categoryId type`, ['integer', 'null']),
    'output-expected',
  ],
  ["a response's type changes", set(`${PET} properties id type`, 'string'), 'output-expected'],
  ['a response has a new value', append(`${SCHEMAS} PetStatus enum`, 'reserved'), 'output-expected'],
  ['a response may be smaller', set(`${PET} properties id minimum`, -5), 'output-expected'],
  ['a response loses its maximum', drop(`${PET} properties name maxLength`), 'output-expected'],
  ["a response's pattern changes", drop(`${PET} properties name pattern`), 'output-expected'],
  [
    'a list becomes an object',
    set(`${SCHEMAS} Pets`, { type: 'object', properties: { data: { $ref: '#/components/schemas/Pets' } } }),
    'output-expected',
  ],
  [
    'a member has alternatives',
    set(`${PET} properties status`, {
      oneOf: [{ $ref: '#/components/schemas/PetStatus' }, { type: 'null' }],
    }),
    'output-expected',
  ],
  [
    'the media type of a response changes',
    rename(`${LIST} responses 200 content application/json`, 'application/xml'),
    'output-kept',
  ],
  ['a header of the response is removed', drop(`${CREATE} responses 201 headers Location`), 'output-kept'],
  ['a header becomes optional', set('components headers X-Request-Id required', false), 'output-kept'],
  ["a header's values change", set('components headers Retry-After schema minimum', 0), 'output-expected'],
  ['a success has another status', rename(`${CREATE} responses 201`, '200'), 'statuses-kept'],
  ['a success may be empty', set(`${CREATE} responses 204`, { description: 'Added' }), 'statuses-kept'],
  ['the status of an error is removed', drop(`${CREATE} responses 413`), 'statuses-kept'],
  [
    'an error code is removed from a status',
    drop('components responses Unauthorized content application/json examples missing_api_key'),
    'codes-kept',
  ],
  ['an error code is removed', drop(`${SCHEMAS} Error properties code anyOf 0 enum 0`), 'codes-kept'],
  [
    "an error code's type changes",
    set(`${SCHEMAS} Error properties code anyOf 1 type`, 'integer'),
    'output-expected',
  ],
  ['a response excludes other members', set(`${PET} additionalProperties`, false), 'responses-open'],
  ['an error excludes other codes', drop(`${SCHEMAS} Error properties code anyOf 1`), 'responses-open'],
  [
    'an error has only the codes of an enum',
    set(`${SCHEMAS} Error properties code`, RELEASED.components.schemas.Error.properties.code.anyOf[0]),
    'responses-open',
  ],
  ['a member of errors is removed', drop(`${SCHEMAS} Error properties status`), 'output-kept'],
];

describe('a change of a stable operation fails with the rule that it breaks', () => {
  test.each(BREAKING)('%s', (_what, edit, ...rules) => {
    expect([...new Set(compareAfter(edit).breaking.map(({ violation }) => violation.rule))]).toEqual(rules);
  });
});

describe('an operation keeps its mark, and does not become less stable than it was', () => {
  const mark = (stability: string | undefined) => {
    const document = structuredClone(RELEASED);
    (stability === undefined ? drop(`${LIST} x-stability`) : set(`${LIST} x-stability`, stability))(document);
    return document;
  };
  test.each<[before: string | undefined, after: string | undefined, isKept: boolean]>([
    ['stable', 'beta', false],
    ['stable', undefined, false],
    ['beta', 'experimental', false],
    ['beta', undefined, false],
    ['experimental', undefined, false],
    [undefined, 'beta', false],
    [undefined, 'stable', true],
    ['beta', 'stable', true],
    ['experimental', 'beta', true],
    ['stable', 'stable', true],
  ])('from %s to %s', (before, after, isKept) => {
    const { breaking } = compareDocuments(mark(before), mark(after), RELEASE_TIME);
    expect(breaking.map(({ violation }) => violation.rule)).toEqual(isKept ? [] : ['stability-kept']);
  });
});

test('every rule is broken by one of these changes', () => {
  const broken = new Set(BREAKING.flatMap(([, , ...rules]) => rules));
  expect([...broken].sort()).toEqual(Object.keys(RULES).sort());
});

test('schemas that contain themselves are compared', () => {
  const tree = {
    type: 'object',
    properties: { size: { type: 'integer', maximum: 9 }, next: { $ref: '#/components/schemas/Tree' } },
  };
  const before = structuredClone(RELEASED);
  all(
    set(`${SCHEMAS} Tree`, tree),
    set(`${PET} properties tree`, { $ref: '#/components/schemas/Tree' }),
  )(before);
  const after = structuredClone(before);
  set(`${SCHEMAS} Tree properties size maximum`, 10)(after);
  const { breaking } = compareDocuments(before, after, RELEASE_TIME);
  expect(breaking.map(({ operation, violation }) => `${operation}: ${violation.text}`)).toEqual([
    'GET /v1/pets: response Tree.size: maximum is 10, was 9',
    'POST /v1/pets: response Tree.size: maximum is 10, was 9',
    'GET /v1/pets/{petId}: response Tree.size: maximum is 10, was 9',
  ]);
});
