/** What the service and its clients have to agree on. Clients carry this file: it imports nothing. */

/** The most calls that one tRPC batch may hold. */
export const MAX_BATCH_SIZE = 20;

/** The most items that one page of a list may hold. */
export const MAX_PAGE_SIZE = 100;
