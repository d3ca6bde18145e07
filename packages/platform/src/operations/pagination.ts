import { z } from 'zod';
import { MAX_PAGE_SIZE } from '../contract/protocol.js';
import { PAGE_ORDERS } from '../tables/read-statements.js';
import type { RequestContext } from './builder.js';
import { fieldError, INPUT_ERROR, int64, integer } from './input.js';

export const DEFAULT_PAGE_SIZE = 20;

type Filters = Readonly<Record<string, z.ZodOptional>>;

/** The input of every paginated list: `limit`, `cursor`, and the filters of the list. */
export function pageInput<Own extends Filters>(filters: Own) {
  // A call without input has an empty object as input, which TypeScript cannot prove valid for a generic object.
  const nothing = {} as never;
  return z.object(pageMembers(filters), { error: INPUT_ERROR }).prefault(nothing);
}

/** The input of a list with required members, of the path (`{ bookId }` in `/books/{bookId}/loans`) or of the query. */
export function nestedPageInput<Path extends Readonly<Record<string, z.ZodType>>, Own extends Filters>(
  path: Path,
  filters: Own,
) {
  return z.object({ ...path, ...pageMembers(filters) }, { error: INPUT_ERROR });
}

function pageMembers<Own extends Filters>(filters: Own) {
  return {
    limit: integer(1, MAX_PAGE_SIZE)
      .default(DEFAULT_PAGE_SIZE)
      .meta({ description: 'Maximum number of items to return' }),
    ...filters,
    cursor: int64()
      .meta({ description: 'The id of the last item of the previous page', examples: [20] })
      .optional(),
  };
}

/**
 * A member of the input of a list that can be read from either end, as those of `createReads` can.
 *
 * @param mark says that the member is experimental, where the list is stable
 */
export function pageOrder(mark = '') {
  const description = 'Which come first: `oldest` (ascending ids, the default) or `newest` (descending)';
  return z
    .enum(PAGE_ORDERS, { error: fieldError(`must be one of ${PAGE_ORDERS.join(', ')}`) })
    .meta({ description: description + mark })
    .optional();
}

/** The output of every paginated list: a bare array, never longer than the largest `limit`. */
export function pageOutput<Item extends z.ZodType>(item: Item) {
  return z.array(item).max(MAX_PAGE_SIZE);
}

/**
 * Responds with a page: the bare array. Announces the next page in the way of the protocol, over REST in `Link`.
 *
 * @param rows in the order of the list, up to `limit + 1`: the extra one only shows that more follow
 */
export function answerPage<Item extends { readonly id: number }>(
  { linkNextPage }: Pick<RequestContext, 'linkNextPage'>,
  { limit }: { readonly limit: number },
  rows: readonly Item[],
): Item[] {
  const last = rows[limit - 1];
  if (rows.length > limit && last !== undefined) linkNextPage?.(last.id);
  return rows.slice(0, limit);
}
