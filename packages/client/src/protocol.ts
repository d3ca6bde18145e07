/* Written by `npm run docs:update` from the OpenAPI document and the router. */

export const TRPC_PREFIX = '/trpc';
export const MAX_BATCH_SIZE = 20;
export const MAX_PAGE_SIZE = 100;
export const NEXT_CURSOR_FIELD = 'X-Next-Cursor';
export const IDEMPOTENT_MUTATIONS: readonly string[] = ['createPet', 'createOrder'];
