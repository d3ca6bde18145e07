import { crc32 } from 'node:zlib';
import { expect, test } from 'vitest';
import {
  createKeySearch,
  generateKey,
  isWellFormedKey,
  livePrefix,
  testPrefix,
} from '../../src/keys/format.js';

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** A key as every version has issued them: the prefix, 30 characters, and the CRC-32 of both as 6 digits to the base 62 */
function issueKey(prefix: string, random: string): string {
  const sum = crc32(prefix + random);
  const digits = Array.from({ length: 6 }, (_, place) =>
    DIGITS.charAt(Math.floor(sum / 62 ** (5 - place)) % 62),
  );
  return prefix + random + digits.join('');
}

const { redactKeys } = createKeySearch('by_');

test.each([livePrefix('by_'), testPrefix('by_')])(
  'keys %s… that were issued once stay well-formed for good',
  (prefix) => {
    for (const random of ['0'.repeat(30), 'z'.repeat(30), 'aZ09bY18cX27dW36eV45fU54gT63hS'])
      expect(isWellFormedKey(issueKey(prefix, random), prefix)).toBe(true);
    const key = generateKey(prefix);
    expect(key).toBe(issueKey(prefix, key.slice(prefix.length, -6)));
    expect(redactKeys(`<${key}>`)).toBe(`<${key.slice(0, 12)}…>`);
  },
);
