import { describe, expect, test } from 'vitest';
import { compareDocuments } from '../src/compatibility.js';
import type { RuleId } from '../src/rules.js';
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
  reverse,
  SCHEMAS,
  set,
  TAG,
} from './document-edits.js';

const ORDERS = 'paths /store/orders get';

const COMPATIBLE: readonly [what: string, edit: Edit, now?: number][] = [
  ['nothing', all()],
  ['an operation is added', set('paths /pets delete', RELEASED.paths['/pets'].get)],
  ['an optional parameter is added', append(`${LIST} parameters`, TAG)],
  ['a required parameter becomes optional', set(`${GET} parameters 0 required`, false)],
  [
    "a parameter's maximum rises, and the length of the page with it",
    all(set(`${LIST} parameters 0 schema maximum`, 200), set(`${SCHEMAS} Pets maxItems`, 200)),
  ],
  ['an optional member of the request is added', set(`${NEW_PET} properties note`, NOTE)],
  ['a required member becomes optional', drop(`${NEW_PET} required 1`)],
  ['a longer name is accepted', set(`${NEW_PET} properties name maxLength`, 300)],
  ["a request's pattern goes", drop(`${NEW_PET} properties name pattern`)],
  ['a further type is accepted', set(`${NEW_PET} properties categoryId type`, ['integer', 'string'])],
  ['a number with a fraction is accepted', set(`${NEW_PET} properties categoryId type`, 'number')],
  [
    'a further value is accepted, and not sent',
    set(`${NEW_PET} properties status`, {
      ...RELEASED.components.schemas.NewPet.properties.status,
      $ref: undefined,
      type: 'string',
      enum: ['available', 'pending', 'sold', 'lost'],
    }),
  ],
  ['a further media type is accepted', set(`${CREATE} requestBody content application/cbor`, { schema: {} })],
  [
    'a member of the response is added',
    all(set(`${PET} properties note`, NOTE), append(`${PET} required`, 'note')),
  ],
  [
    'an optional header of the response becomes required',
    set('components headers Idempotency-Replayed required', true),
  ],
  [
    'a header of the response is added',
    set(`${LIST} responses 200 headers ETag`, { schema: { type: 'string' } }),
  ],
  [
    'an error code is added, with a new status',
    all(
      append(`${SCHEMAS} Error properties code anyOf 0 enum`, 'teapot'),
      set(`${LIST} responses 418`, { description: 'A teapot' }),
    ),
  ],
  ['a response narrows', set(`${PET} properties id maximum`, 1000)],
  [
    'the order of parameters, members and values changes',
    all(reverse(`${LIST} parameters`), reverse(`${PET} required`), reverse(`${SCHEMAS} PetStatus enum`)),
  ],
  [
    'a schema is renamed',
    all(
      rename(PET, 'Animal'),
      set(`${SCHEMAS} Pets items $ref`, '#/components/schemas/Animal'),
      set(`${CREATE} responses 201 content application/json schema $ref`, '#/components/schemas/Animal'),
      set(`${GET} responses 200 content application/json schema $ref`, '#/components/schemas/Animal'),
    ),
  ],
  [
    'descriptions change',
    all(set(`${LIST} description`, 'Animals'), set(`${NEW_PET} description`, 'An animal')),
  ],
  ['another way of authentication is added', append(`${LIST} security`, {})],
  [
    'an operation is deprecated with 12 months of notice',
    deprecate(LIST, '2027-03-01T00:00:00Z', '2028-03-01T00:00:00Z'),
  ],
  ['a removal is postponed', set(`${GET} x-sunset`, '2031-12-05T00:00:00Z')],
  [
    'a deprecation is withdrawn',
    all(drop(`${GET} deprecated`), drop(`${GET} responses 410`), drop(`${GET} responses 200 headers Sunset`)),
  ],
  [
    'a deprecated operation is removed on its date',
    drop('paths /pets/{petId}'),
    Date.parse('2030-12-05T00:00:00Z'),
  ],
];

describe('a change that clients tolerate passes', () => {
  test.each(COMPATIBLE)('%s', (_what, edit, now) => {
    expect(compareAfter(edit, now).breaking).toEqual([]);
  });
});

test('opening a closed document passes: responses that excluded members, and codes that were an enum', () => {
  const closed = structuredClone(RELEASED);
  all(
    set(`${PET} additionalProperties`, false),
    set(`${SCHEMAS} Error additionalProperties`, false),
    set(`${SCHEMAS} Error properties code`, RELEASED.components.schemas.Error.properties.code.anyOf[0]),
  )(closed);
  expect(compareDocuments(closed, RELEASED, RELEASE_TIME).breaking).toEqual([]);
});

describe('a change of an experimental operation is listed and passes', () => {
  const operation = 'GET /v1/store/orders';
  test.each<[what: string, edit: Edit, rule?: RuleId]>([
    ['it is removed', drop(ORDERS), 'operation-kept'],
    ['a parameter is removed', drop(`${ORDERS} parameters 0`), 'input-kept'],
    ['a member is removed', drop(`${SCHEMAS} Order properties quantity`), 'output-kept'],
    ['a value is added', append(`${SCHEMAS} OrderStatus enum`, 'lost'), 'output-expected'],
    ['a member is added', set(`${SCHEMAS} Order properties note`, NOTE)],
    ['it becomes stable', set(`${ORDERS} x-stability`, 'stable')],
  ])('%s', (_what, edit, rule) => {
    const { breaking, experimental } = compareAfter(edit);
    expect(breaking).toEqual([]);
    expect(experimental.map((change) => [change.operation, change.violation?.rule])).toEqual([
      [operation, rule],
    ]);
  });

  test('a description that changes is not listed', () => {
    expect(compareAfter(set(`${ORDERS} description`, 'Orders')).experimental).toEqual([]);
  });
});
