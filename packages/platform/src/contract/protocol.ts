/** Constants that the service and its clients share: those of packages/client-core are the same. */

/** The API of a request, as logs and metrics name it. */
export type Protocol = 'rest' | 'trpc' | 'mcp';

/** The path prefix of REST; part of every URL that the service hands out. */
export const REST_PREFIX = '/v1';

/** The path prefix of tRPC. */
export const TRPC_PREFIX = '/trpc';

/** The only path of the Model Context Protocol. */
export const MCP_PREFIX = '/mcp';

/** The most calls that one tRPC batch may contain. */
export const MAX_BATCH_SIZE = 20;

/**
 * The header that tRPC sends where REST sends Link. For each call of a batch that has returned a page, it has the cursor of
 * the next page, or null after the last: `0=20, 3=null`. Streams lack it, because their headers are sent first.
 */
export const NEXT_CURSOR_FIELD = 'X-Next-Cursor';

/** The most items that one page of a list may contain. */
export const MAX_PAGE_SIZE = 100;

/** The methods whose requests have a body, which must be JSON. */
export const METHODS_WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);
