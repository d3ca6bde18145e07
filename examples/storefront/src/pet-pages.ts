import { nextCursor, type Pet, type PetStatus } from '@animal-store/client';
import { type InfiniteData, useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { useTRPC } from './connection.js';

/** Fills whole rows of two, four and five cards. */
const PAGE_SIZE = 20;

/**
 * Returns a function that shows an animal as it is now, where it is: also in a list of those that have another status. The
 * other lists are read again when they are shown.
 */
export function useReplacePet() {
  const { listPets, listOrders } = useTRPC();
  const queryClient = useQueryClient();
  return (pet: Pet) => {
    const pages = { ...listPets.infiniteQueryFilter(), type: 'active' } as const;
    queryClient.setQueriesData<InfiniteData<Pet[]>>(pages, (data) => {
      if (data === undefined) return undefined;
      const replaced = data.pages.map((page) => page.map((each) => (each.id === pet.id ? pet : each)));
      return { ...data, pages: replaced };
    });
    for (const { pathFilter } of [listPets, listOrders])
      queryClient.removeQueries({ ...pathFilter(), type: 'inactive' });
  };
}

export function usePetPages(status: PetStatus | undefined, categoryId: number | undefined) {
  const trpc = useTRPC();
  return useInfiniteQuery(
    trpc.listPets.infiniteQueryOptions(
      { limit: PAGE_SIZE, ...(status && { status }), ...(categoryId !== undefined && { categoryId }) },
      // A page in which an animal was replaced is a copy. If it is not full, it is still the last.
      { getNextPageParam: (page) => (page.length < PAGE_SIZE ? null : nextCursor(page)) },
    ),
  );
}
