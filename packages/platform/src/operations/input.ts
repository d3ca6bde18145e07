import { z } from 'zod';
// Types only: zod-openapi augments zod/v4 with the `override` member of `.meta()`.
import type {} from 'zod/v4';
import type {} from 'zod-openapi';

const MAX_INTEGER = Number.MAX_SAFE_INTEGER;
const MAX_INT32 = 2 ** 31 - 1;
/** Matches only half a pair: with the u flag, a complete pair is one code point. */
const LONE_SURROGATE = /\p{Surrogate}/u;
const BLANK = /^\p{White_Space}+$/u;
/**
 * White space as Unicode defines it. Few validators know \p{White_Space}, and \s lacks U+0085 and includes U+FEFF, which is
 * not white space. The pattern does not exclude NUL, because generators would write it into their files, and tools would
 * take those for binary.
 */
const NOT_BLANK_PATTERN = '^[\\s\\S]*(?:[^\\s\\u0085]|\\ufeff)[\\s\\S]*$';

/** The message for input that is not an object at all. */
export const INPUT_ERROR = 'The input must be a JSON object';

/*
 * Every check here aborts, so that a rule across members, a `.refine()` of their object, does not run on one that is refused.
 */

/** A strict JSON integer within bounds: a string, boolean, null or fraction is not one. */
export function integer(min: number, max: number) {
  const error = fieldError(`must be an integer from ${min} to ${max}`);
  return z
    .int({ error })
    .min(min, { abort: true, error })
    .max(max, { abort: true, error })
    .meta({ override: integerSchema(min, max) });
}

/** The JSON Schema of an integer within bounds, with the format that tells typed languages its size. */
export function integerSchema(min: number, max: number) {
  const format = min >= -MAX_INT32 && max <= MAX_INT32 ? 'int32' : 'int64';
  return { type: 'integer', format, minimum: min, maximum: max } as const;
}

/** An identifier: int64 on the wire, within the integers that JavaScript represents exactly. */
export function int64() {
  return integer(-MAX_INTEGER, MAX_INTEGER);
}

/** An identifier that the database assigns: always positive. */
export function assignedId() {
  return integer(1, MAX_INTEGER);
}

/**
 * A string of `min` to `max` Unicode code points, kept as sent. It has neither NUL nor half of a surrogate pair, which
 * PostgreSQL cannot store. It is not white space only, unless `min` is 0.
 */
export function text(min: number, max: number) {
  const range = `${min} to ${max} characters`;
  return z
    .string({ error: fieldError(`must be a string of ${range}`) })
    .refine((value) => hasLength(value, min, max), { abort: true, error: `must have ${range}` })
    .refine((value) => !LONE_SURROGATE.test(value), {
      abort: true,
      error: 'must not contain half of a surrogate pair',
    })
    .refine((value) => !value.includes('\0'), { abort: true, error: 'must not contain a NUL character' })
    .refine((value) => min === 0 || !BLANK.test(value), {
      abort: true,
      error: 'must not be white space only',
    })
    .meta({ override: { minLength: min, maxLength: max, ...(min > 0 && { pattern: NOT_BLANK_PATTERN }) } });
}

/** A code point is one or two UTF-16 units, so most strings need no counting. */
function hasLength(value: string, min: number, max: number): boolean {
  const { length } = value;
  if (length < min || length > max * 2) return false;
  if (length >= min * 2 && length <= max) return true;
  const codePoints = [...value].length;
  return codePoints >= min && codePoints <= max;
}

/** A moment as text, such as 2026-01-31T09:30:00.000Z; for a column of the type timestamptz. */
export function instant(description: string) {
  return z.iso
    .datetime({ abort: true, error: fieldError('must be a time in UTC, such as 2026-01-31T09:30:00Z') })
    .refine(isInCalendar, { abort: true, error: YEAR_ERROR })
    .refine((value) => !TOO_PRECISE.test(value), {
      abort: true,
      error: 'must have at most nine digits of a second',
    })
    .meta({ description: `${description} (RFC 3339, UTC)`, override: withoutPattern });
}

/** A day as text, such as 2026-01-31; for a column of the type date. */
export function date(description: string) {
  return z.iso
    .date({ abort: true, error: fieldError('must be a date, such as 2026-01-31') })
    .refine(isInCalendar, { abort: true, error: YEAR_ERROR })
    .meta({ description: `${description} (RFC 3339, full-date)`, override: withoutPattern });
}

/** PostgreSQL has no year 0. */
const isInCalendar = (value: string) => !value.startsWith('0000');
const YEAR_ERROR = 'must have a year from 0001 to 9999';
/** PostgreSQL rejects a text that is too long to be a time. */
const TOO_PRECISE = /\.\d{10}/;

/** Drops the long pattern, because the format says the same. */
function withoutPattern({ jsonSchema }: { readonly jsonSchema: { pattern?: unknown } }): void {
  delete jsonSchema.pattern;
}

/**
 * An exact decimal number as text, such as 12.50; for a column of the type `decimal(precision, scale)`, which returns it
 * with `scale` digits after the point. It is text because programs read JSON numbers as binary
 * fractions, which cannot hold 0.1 exactly.
 */
export function decimal(precision: number, scale: number, description: string) {
  const integerDigits = precision - scale;
  const range = `${integerDigits} digits before the point and ${scale} after it`;
  const whole = integerDigits === 0 ? '0' : `(?:0|[1-9]\\d{0,${integerDigits - 1}})`;
  const fraction = scale === 0 ? '' : `(?:\\.\\d{1,${scale}})?`;
  return z
    .string({ error: fieldError('must be a string with a decimal number') })
    .regex(new RegExp(`^-?${whole}${fraction}$`), {
      abort: true,
      error: `must be a decimal number of at most ${range}`,
    })
    .meta({ description: `${description} (a decimal number of at most ${range})` });
}

/**
 * The message for a field: "is required" when it is absent, `problem` when it is wrong. Callers often send null for a member
 * that is left out, so the error says that null is not allowed.
 */
export function fieldError(problem: string) {
  return ({ input }: { readonly input?: unknown }) => {
    if (input === undefined) return 'is required';
    return input === null ? `${problem}; null is not allowed` : problem;
  };
}
