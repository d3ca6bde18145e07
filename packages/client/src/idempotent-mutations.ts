/** The mutations that take an Idempotency-Key. Written by `npm run docs:update`, from the router. */
export const IDEMPOTENT_MUTATIONS: readonly string[] = ['createPet'];
