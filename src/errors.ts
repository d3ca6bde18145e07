/**
 * The error codes of the store's own operations, beside those that every operation may respond with. An operation names
 * those that are its own in the `errors` of its `.meta()`, and throws `new ApiError(code)`. A code never changes its meaning:
 * clients depend on it.
 *
 *   resource_in_use: {
 *     status: 409,
 *     trpcCode: 'CONFLICT',
 *     message: 'The animal has orders.',
 *     description: 'something refers to the resource',
 *   },
 *
 * The document, the guide's table and the client's types follow. Like scopes.ts, this file imports nothing, and the
 * platform imports it as #store/errors.js.
 */
export const ERRORS = {} as const;
