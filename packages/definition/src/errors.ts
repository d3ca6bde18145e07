/**
 * The error codes of the store's own operations, beside those that every operation may respond with. An operation names
 * those that are its own in the `errors` of its `.meta()`, and throws `new ApiError(code)`. A code never changes its meaning:
 * clients depend on it.
 *
 * `message` and `description` are for people, and `advice` says to a language model, after the message, what to do next.
 *
 * What is missing by its id is the platform's `not_found`. `npm run docs:update` brings a new code to the document and the
 * client's types; add its row to the table in docs/guides/03-errors.md. Like scopes.ts, this file imports nothing.
 */
export const ERRORS = {
  pet_not_available: {
    status: 409,
    trpcCode: 'CONFLICT',
    message: 'The animal is not available: it is pending, sold or ordered.',
    advice:
      'If a call of yours had no result, its order may be this one: see listOrders with the `petId`. To find another animal, ' +
      'call listPets with a `status` of `available`.',
    description: 'the animal is pending or sold, or has an open order',
  },
  pet_status_changed: {
    status: 409,
    trpcCode: 'CONFLICT',
    message: 'The animal has another status by now, and nothing was changed: load the animal again.',
    description: 'the animal has another status than `expectedStatus`',
    advice:
      'To load it, call listPets with a `limit` of 1 and the id minus one as `cursor`. Repeat the change only if it still ' +
      'makes sense.',
  },
  pet_has_open_order: {
    status: 409,
    trpcCode: 'CONFLICT',
    message: 'The animal has an open order, and its status changes with that: deliver or cancel the order.',
    description: 'the animal has an open order, and its status changes with that',
    advice:
      'Use updateOrder, with the id of the order. The other members of the animal can be changed meanwhile.',
  },
  order_closed: {
    status: 409,
    trpcCode: 'CONFLICT',
    message: 'The order is closed: it was delivered or cancelled, and its status can no longer change.',
    description: 'the order was delivered or cancelled',
    advice: 'Calling again does not help: getOrder says which of the two it was.',
  },
} as const;
