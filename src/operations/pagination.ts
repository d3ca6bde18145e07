import { z } from 'zod';
import { MAX_PAGE_SIZE } from '../contract/protocol.js';
import type { RequestContext } from './builder.js';
import { INPUT_ERROR, int64, integer } from './input.js';

export const DEFAULT_PAGE_SIZE = 20;

/** One page of a list that is ordered by ascending id. */
export interface Page<Item> {
  readonly items: Item[];
  readonly hasMore: boolean;
}

/** The input of every paginated list: `limit`, `cursor`, and the filters of the list. */
export function pageInput<Filters extends Readonly<Record<string, z.ZodOptional>>>(filters: Filters) {
  // A call without input has an empty object as input, which TypeScript cannot prove valid for a generic object.
  const nothing = {} as never;
  return z
    .object(
      {
        limit: integer(1, MAX_PAGE_SIZE)
          .default(DEFAULT_PAGE_SIZE)
          .meta({ description: 'Maximum number of items to return' }),
        ...filters,
        cursor: int64()
          .meta({
            description: 'The id of the last item of the previous page',
            examples: [20],
          })
          .optional(),
      },
      { error: INPUT_ERROR },
    )
    .prefault(nothing);
}

/** The output of every paginated list: a bare array, never longer than the largest `limit`. */
export function pageOutput<Item extends z.ZodType>(item: Item) {
  return z.array(item).max(MAX_PAGE_SIZE);
}

/** Makes a page of up to `limit + 1` rows: the extra row only shows that more follow. */
export function toPage<Item>(rows: Item[], limit: number): Page<Item> {
  const hasMore = rows.length > limit;
  return { items: hasMore ? rows.slice(0, limit) : rows, hasMore };
}

/** Responds with a page: the bare array and, over REST, the address of the next page in `Link`. */
export function answerPage<Item extends { readonly id: number }>(
  { rest }: Pick<RequestContext, 'rest'>,
  { items, hasMore }: Page<Item>,
): Item[] {
  const last = items.at(-1);
  if (hasMore && last !== undefined) rest?.linkNextPage(last.id);
  return items;
}
