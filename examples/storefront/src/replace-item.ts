import { type InfiniteData, useQueryClient } from '@tanstack/react-query';
import { useTRPC } from './connection.js';

interface Item {
  readonly id: number;
}

/**
 * Returns a function that shows an item as it is now, where it is: also in a list of those that have another status. An animal
 * and its order change together, so the other lists of both are read again when they are shown.
 */
export function useReplaceItem(list: 'listPets' | 'listOrders') {
  const trpc = useTRPC();
  const queryClient = useQueryClient();
  return (item: Item) => {
    const pages = { ...trpc[list].infiniteQueryFilter(), type: 'active' } as const;
    queryClient.setQueriesData<InfiniteData<Item[]>>(pages, (data) => {
      if (data === undefined) return undefined;
      const replaced = data.pages.map((page) => page.map((each) => (each.id === item.id ? item : each)));
      return { ...data, pages: replaced };
    });
    for (const { pathFilter } of [trpc.listPets, trpc.listOrders])
      queryClient.removeQueries({ ...pathFilter(), type: 'inactive' });
  };
}
