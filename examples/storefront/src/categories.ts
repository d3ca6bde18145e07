import { useQuery } from '@tanstack/react-query';
import { useTRPC } from './connection.js';
import { type Kind, kindOf } from './vocabulary.js';

interface DisplayedCategory {
  readonly label: string;
  readonly kind: Kind;
}

/** As many as fit into a page: what a select and a row of tiles can show. */
const LIMIT = 100;

function useNamed() {
  // After a failure it is asked for again with the animals, and not by each component that shows a category.
  return useQuery(useTRPC().listCategories.queryOptions({ limit: LIMIT }, { retryOnMount: false }));
}

/** The categories that have a name, by their number. It is asked for once, together with the first page of animals. */
export function useCategories(): ReadonlyMap<number, DisplayedCategory> {
  const { data = [] } = useNamed();
  return new Map(data.map(({ id, name }) => [id, { label: name, kind: kindOf(name) }]));
}

/** Whether these are all that have a name. */
export function useHasAllCategories(): boolean {
  const { data } = useNamed();
  return data !== undefined && data.length < LIMIT;
}

/** A category as it is shown, whether or not it has a name. */
export function useCategory(id: number): DisplayedCategory {
  return useCategories().get(id) ?? { label: `Category ${id}`, kind: 'paw' };
}
