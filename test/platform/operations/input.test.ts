import { expect, test } from 'vitest';
import { text } from '../../../src/platform/operations/input.js';

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
