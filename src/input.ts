import { z } from 'zod';
// Types only: zod-openapi augments zod/v4 with the `override` member of `.meta()`.
import type {} from 'zod/v4';
import type {} from 'zod-openapi';

const MAX_INTEGER = Number.MAX_SAFE_INTEGER;

/** The message for input that is not an object at all. */
export const INPUT_ERROR = 'The input must be a JSON object';

/** A strict JSON integer within bounds: a string, boolean, null or fraction is not one. */
export function integer(min: number, max: number) {
  const error = fieldError(`must be an integer from ${min} to ${max}`);
  return z
    .int({ error })
    .min(min, { error })
    .max(max, { error })
    .meta({ override: { type: 'integer', minimum: min, maximum: max } });
}

/** An identifier: int64 on the wire, within the integers that JavaScript represents exactly. */
export function int64() {
  return integer(-MAX_INTEGER, MAX_INTEGER).meta({
    override: { type: 'integer', format: 'int64', minimum: -MAX_INTEGER, maximum: MAX_INTEGER },
  });
}

/** An identifier that the database assigns: always positive. */
export function assignedId() {
  return integer(1, MAX_INTEGER).meta({
    override: { type: 'integer', format: 'int64', minimum: 1, maximum: MAX_INTEGER },
  });
}

/** The message for a field: "is required" when it is absent, `problem` when it is wrong. */
export function fieldError(problem: string) {
  return (issue: { readonly input?: unknown }) => (issue.input === undefined ? 'is required' : problem);
}
