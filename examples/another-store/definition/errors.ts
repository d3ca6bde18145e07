/** The codes of the store's own operations, which name them in their `errors`. */
export const ERRORS = {
  boat_sold: {
    status: 409,
    trpcCode: 'CONFLICT',
    message: 'The boat is sold.',
    description: 'the boat is sold',
    advice: 'To find another one, call listBoats with a `status` of `for_sale`.',
  },
} as const;
