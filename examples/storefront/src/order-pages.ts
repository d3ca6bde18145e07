import { nextCursor } from '@animal-store/client';
import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useTRPC, useTRPCClient } from './connection.js';
import type { OrderStatus } from './vocabulary.js';

const PAGE_SIZE = 50;
const NAMES_PAGE_SIZE = 100;
/** At most so many requests for the names of the animals, whose ids may be far apart */
const MAX_NAME_PAGES = 5;

/** The newest first. */
export function useOrderPages(status: OrderStatus | undefined, petId: number | undefined) {
  const trpc = useTRPC();
  return useInfiniteQuery(
    trpc.listOrders.infiniteQueryOptions(
      {
        limit: PAGE_SIZE,
        order: 'newest',
        ...(status && { status }),
        ...(petId !== undefined && { petId }),
      },
      // A page in which an order was replaced is a copy. If it is not full, it is still the last.
      { getNextPageParam: (page) => (page.length < PAGE_SIZE ? null : nextCursor(page)) },
    ),
  );
}

/** The names of animals by their ids, as far as a few pages of the catalogue have them. */
export function useNames(ids: readonly number[]): ReadonlyMap<number, string> {
  const client = useTRPCClient();
  const wanted = [...new Set(ids)].sort((a, b) => a - b);
  const { data } = useQuery({
    queryKey: ['names', wanted],
    enabled: wanted.length > 0,
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      const names = new Map<number, string>();
      let missing = wanted;
      for (let page = 0; page < MAX_NAME_PAGES && missing[0] !== undefined; page += 1) {
        const query = { cursor: missing[0] - 1, limit: NAMES_PAGE_SIZE };
        const pets = await client.listPets.query(query, { signal });
        for (const { id, name } of pets) names.set(id, name);
        const last = pets.at(-1)?.id ?? Number.POSITIVE_INFINITY;
        missing = missing.filter((id) => id > last);
      }
      return names;
    },
  });
  return data ?? new Map<number, string>();
}
