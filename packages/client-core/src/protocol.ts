/* What the platform promises to the clients of any store: the constants of its contract/protocol.ts. */

export const TRPC_PREFIX = '/trpc';
export const MAX_BATCH_SIZE = 20;
export const MAX_PAGE_SIZE = 100;
export const NEXT_CURSOR_FIELD = 'X-Next-Cursor';
