import { z } from 'zod';

const BOUND = Number.MAX_SAFE_INTEGER;

/** The message of an input that is no object at all. */
export const INPUT_FAULT = 'The input must be a JSON object';

/**
 * A strict integer of JSON within bounds: no string, boolean, null or fraction counts as one.
 *
 * The pipe is load-bearing: trpc-to-openapi makes every bare number schema that it serves coerce strings, null and
 * booleans from then on, on both faces; it does not look into a pipe.
 */
export function integer(min: number, max: number) {
  const error = describeFault(`must be an integer from ${min} to ${max}`);
  return z
    .number({ error })
    .pipe(z.int({ error }).min(min, { error }).max(max, { error }))
    .meta({ override: { type: 'integer', minimum: min, maximum: max } });
}

/** An identifier: int64 on the wire, kept to the integers that JavaScript carries exactly. */
export function int64() {
  return integer(-BOUND, BOUND).meta({
    override: { type: 'integer', format: 'int64', minimum: -BOUND, maximum: BOUND },
  });
}

/** An identifier that the database assigns: positive. */
export function assignedId() {
  return integer(1, BOUND).meta({
    override: { type: 'integer', format: 'int64', minimum: 1, maximum: BOUND },
  });
}

/** The message of a field that is absent, or else wrong. */
export function describeFault(fault: string) {
  return (issue: { readonly input?: unknown }) => (issue.input === undefined ? 'is required' : fault);
}
