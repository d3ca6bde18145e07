import { expect, test } from 'vitest';
import { parseId, parseName, parseOwner } from '../../src/cli/arguments.js';

test.each([parseName, parseOwner])(
  '%o takes up to 200 characters, whatever they are, and not one more',
  (parse) => {
    for (const character of ['x', 'é', '🐶']) {
      expect(parse(character.repeat(200))).toBe(character.repeat(200));
      expect(() => parse(character.repeat(201))).toThrow('1 to 200 characters');
    }
  },
);

test('four characters of an id are enough', () => {
  expect(parseId('0B54')).toBe('0b54');
  expect(() => parseId('0B5')).toThrow('at least its first 4 characters');
});
