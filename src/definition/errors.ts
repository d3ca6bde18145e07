/**
 * The error codes of the store's own operations, besides the codes that every operation may respond with. An operation names
 * its own codes in the `errors` of its `.meta()`, and throws `new ApiError(code)`. A code never changes its meaning, because
 * clients depend on it.
 *
 * `message` and `description` are for people; `advice` follows the message and tells a language model what to do next.
 *
 * For an id that does not exist, use the platform's `not_found`. `npm run docs:update` brings a new code to the document and
 * the client's types; add its row to the table in docs/guides/03-errors.md.
 */
export const ERRORS = {
  pet_not_available: {
    status: 409,
    trpcCode: 'CONFLICT',
    message: 'The animal is not available: it is pending, sold or ordered.',
    advice:
      'If a call of yours got no result, it may have placed this order: see listOrders with the `petId`. To find another animal, ' +
      'call listPets with a `status` of `available`.',
    description: 'the animal is pending or sold, or has an open order',
  },
  pet_status_changed: {
    status: 409,
    trpcCode: 'CONFLICT',
    message: 'The animal has a different status by now, so nothing was changed: load the animal again.',
    description: 'the status of the animal is not `expectedStatus`',
    advice:
      'To load it, call listPets with a `limit` of 1 and the id minus one as `cursor`. Repeat the change only if it still ' +
      'makes sense.',
  },
  pet_has_open_order: {
    status: 409,
    trpcCode: 'CONFLICT',
    message: 'The animal has an open order, so only the order can change its status: deliver or cancel it.',
    description: 'the animal has an open order, so only the order can change its status',
    advice:
      'Use updateOrder, with the id of the order. Meanwhile updatePet can change the other members of the animal.',
  },
  order_closed: {
    status: 409,
    trpcCode: 'CONFLICT',
    message: 'The order is closed: it was delivered or cancelled, and its status can no longer change.',
    description: 'the order was delivered or cancelled',
    advice: 'Calling again does not help. getOrder tells whether the order was delivered or cancelled.',
  },
} as const;
