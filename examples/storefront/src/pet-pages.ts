import { nextCursor, type PetStatus } from '@animal-store/client';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useTRPC } from './connection.js';

/** Fills whole rows of two, four and five cards. */
const PAGE_SIZE = 20;

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
