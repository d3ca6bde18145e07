import { createCaller, toolCall } from '@animal-store/platform/testing';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { list } from '#operations-under-test';
import { date, decimal, instant, integer, text } from '../../src/operations/input.js';
import { startService } from '../support/test-service.js';

interface TextSchema {
  readonly minLength: number;
  readonly maxLength: number;
  readonly pattern?: string;
}

test.each([
  [2, '🐈', 'must have 2 to 3 characters'],
  [2, '🐈🐈', undefined],
  [2, '🐈🐈🐈', undefined],
  [2, '🐈🐈🐈🐈', 'must have 2 to 3 characters'],
  [2, 'abc', undefined],
  [2, 'abcd', 'must have 2 to 3 characters'],
  [2, '  ', 'must not be white space only'],
  [2, 'a\0', 'must not contain a NUL character'],
  [2, 'a\ud800', 'must not contain half of a surrogate pair'],
  [2, 5, 'must be a string of 2 to 3 characters'],
  [2, undefined, 'is required'],
  [0, '', undefined],
  [0, ' ', undefined],
  [0, '\0', 'must not contain a NUL character'],
])(
  'a text of %i to 3 code points given %j, and its JSON Schema, agree on whether it is valid',
  (min, value, problem) => {
    const schema = text(min, 3);
    expect(schema.safeParse(value).error?.issues[0]?.message).toBe(problem);
    const { override } = schema.meta() as { readonly override: TextSchema };
    const { minLength, maxLength, pattern } = override;
    // JSON Schema cannot express half of a surrogate pair, and generators would write a NUL into their files.
    if (typeof value === 'string' && !/[\0\ud800]/.test(value)) {
      const { length } = [...value];
      const isValid =
        length >= minLength && length <= maxLength && new RegExp(pattern ?? '', 'u').test(value);
      expect(isValid).toBe(problem === undefined);
    }
  },
);

test.each([
  ['2026-01-31', undefined],
  ['2024-02-29', undefined],
  ['2026-02-29', 'must be a date, such as 2026-01-31'],
  ['31.01.2026', 'must be a date, such as 2026-01-31'],
  ['infinity', 'must be a date, such as 2026-01-31'],
  ['0000-01-01', 'must have a year from 0001 to 9999'],
  [20_260_131, 'must be a date, such as 2026-01-31'],
  [undefined, 'is required'],
])('a date given %j', (value, problem) => {
  expect(date('Due').safeParse(value).error?.issues[0]?.message).toBe(problem);
});

test.each([
  ['2026-01-31T09:30:00Z', undefined],
  ['2026-01-31T09:30:00.123Z', undefined],
  ['2026-01-31T09:30:00+01:00', 'must be a time in UTC, such as 2026-01-31T09:30:00Z'],
  ['0000-01-01T00:00:00Z', 'must have a year from 0001 to 9999'],
  ['2026-01-31T09:30:00.123456789Z', undefined],
  ['2026-01-31T09:30:00.1234567890Z', 'must have at most nine digits of a second'],
  [undefined, 'is required'],
])('an instant given %j', (value, problem) => {
  expect(instant('When').safeParse(value).error?.issues[0]?.message).toBe(problem);
});

test.each([
  ['12.50', true],
  ['0', true],
  ['-0.05', true],
  ['999', true],
  ['1000', false],
  ['1.234', false],
  ['01', false],
  ['.5', false],
  ['1.', false],
  ['1e2', false],
  ['NaN', false],
  ['Infinity', false],
  ['', false],
  [12.5, false],
])('a decimal of 5 digits, 2 of them after the point, given %j, and its JSON Schema', (value, isValid) => {
  const schema = decimal(5, 2, 'Price');
  expect(schema.safeParse(value).success).toBe(isValid);
  const { pattern = '' } = z.toJSONSchema(schema);
  if (typeof value === 'string') expect(new RegExp(pattern, 'u').test(value)).toBe(isValid);
});

test('a decimal may have no digits on either side of the point', () => {
  const accepted = (precision: number, scale: number) =>
    ['0', '0.5', '5', '-5'].filter((value) => decimal(precision, scale, 'Share').safeParse(value).success);
  expect([accepted(1, 1), accepted(1, 0)]).toEqual([
    ['0', '0.5'],
    ['0', '5', '-5'],
  ]);
});

test('an operation without an input refuses what is no object, as those with one do', async () => {
  const service = await startService();
  onTestFinished(() => service.close());
  const call = createCaller(service);
  for (const name of [list.name, 'getKey']) {
    for (const input of ['5', '[]', '"x"', 'null', 'true']) {
      const { status, body } = await call(`/trpc/${name}?input=${encodeURIComponent(input)}`);
      expect([name, input, status]).toEqual([name, input, 400]);
      expect(body.error.data.error.message).toBe('The input must be a JSON object.');
      const mcp = await call('/mcp', toolCall(name, JSON.parse(input)));
      expect([name, input, mcp.body.error?.code]).toEqual([name, input, -32602]);
    }
    expect((await call(`/trpc/${name}?input={}`)).status).toBe(200);
    expect((await call(`/trpc/${name}`)).status).toBe(200);
  }
});

test.each([
  ['integer', integer(1, 9), [10, -1, 1.5, '1']],
  ['text', text(1, 3), ['', 'abcd', ' ', '\0', '\ud800', 1]],
  ['instant', instant('When'), ['0000-01-01T00:00:00Z', 'now', 1]],
  ['date', date('The day'), ['0000-01-01', 'today', 1]],
  ['decimal', decimal(4, 2, 'The price'), ['1.234', 'x', 1]],
] as const)('%s: a rule across members does not judge one that is refused', (_kind, member, refused) => {
  const rule = { error: 'the first must not be the second' };
  const schema = z.object({ first: member, second: member }).refine(() => false, rule);
  for (const first of refused) {
    const { error } = schema.safeParse({ first, second: first });
    expect([first, error?.issues.map(({ path }) => path[0])]).toEqual([first, ['first', 'second']]);
  }
});
