/**
 * The error codes of the store's own operations, beside those that every operation may respond with. An operation names
 * those that are its own in the `errors` of its `.meta()`, and throws `new ApiError(code)`. A code never changes its meaning:
 * clients depend on it.
 *
 * The document and the client's types follow, and the table in docs/guides/03-errors.md gets a row. Like scopes.ts, this file
 * imports nothing, and the platform imports it as #store/errors.js.
 */
export const ERRORS = {
  pet_not_available: {
    status: 409,
    trpcCode: 'CONFLICT',
    message: 'The animal is not available: somebody else has ordered or bought it.',
    description: 'the animal is pending or sold',
  },
} as const;
