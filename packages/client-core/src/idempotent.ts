/** The mutations that take an Idempotency-Key. In a packed client they are those of its store. */
export const IDEMPOTENT_MUTATIONS: readonly string[] = [];
