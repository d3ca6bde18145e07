import fc from 'fast-check';
import { expect, test } from 'vitest';
import { integer } from '../../src/operations/input.js';
import { keepFractions } from '../../src/protocols/json.js';

/** A decimal literal, and its exact value in big integers. */
const literal = fc
  .record({
    sign: fc.constantFrom('', '-'),
    whole: fc.oneof(fc.bigInt({ min: 0n, max: 2n ** 54n }), fc.bigInt({ min: 0n, max: 20n })).map(String),
    fraction: fc.oneof(fc.constant(''), fc.stringMatching(/^[0-9]{1,25}$/), fc.stringMatching(/^0{1,25}$/)),
    exponent: fc.option(fc.integer({ min: -30, max: 30 })),
  })
  .map(({ sign, whole, fraction, exponent }) => {
    const text = `${sign}${whole}${fraction && `.${fraction}`}${exponent === null ? '' : `e${exponent}`}`;
    const shift = BigInt((exponent ?? 0) - fraction.length);
    const digits = BigInt(whole + fraction);
    const isWhole = shift >= 0n || digits % 10n ** -shift === 0n;
    const value = shift >= 0n ? digits * 10n ** shift : digits / 10n ** -shift;
    return { text, isWhole, value: sign === '-' ? -value : value };
  });

const strict = integer(-Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
const bound = BigInt(Number.MAX_SAFE_INTEGER);

test('a JSON number is accepted exactly when its decimal value is an integer within the bounds, and is never rounded', () => {
  fc.assert(
    fc.property(literal, ({ text, isWhole, value }) => {
      const parsed = strict.safeParse(JSON.parse(keepFractions(`{"n":${text}}`)).n);
      expect(parsed.success).toBe(isWhole && value >= -bound && value <= bound);
      if (parsed.success) expect(BigInt(parsed.data)).toBe(value);
    }),
    { numRuns: 2_000 },
  );
});

test('text without a number that would be rounded is left unchanged', () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      const unrounded = JSON.stringify(JSON.parse(text));
      expect(keepFractions(unrounded)).toBe(unrounded);
    }),
  );
  const inStrings = String.raw`{"a\"1.00000000000000000001":"1e-400\\","b":[1.5,2e3]}`;
  expect(keepFractions(inStrings)).toBe(inStrings);
});
