/** What the service and its clients have to agree on. The client is bundled with this file: it imports nothing. */

/** Which of the two APIs a request came in through, as logs and metrics name it. */
export type Protocol = 'rest' | 'trpc';

/** The path that REST lives under; part of every URL that the service hands out. */
export const REST_PREFIX = '/v1';

/** The path that tRPC lives under. */
export const TRPC_PREFIX = '/trpc';

/** The most calls that one tRPC batch may hold. */
export const MAX_BATCH_SIZE = 20;

/** The most items that one page of a list may hold. */
export const MAX_PAGE_SIZE = 100;
