import { nextCursor, type Order } from '@animal-store/client';
import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import { useAnnounce } from './announcer.js';
import { useTRPC, useTRPCClient } from './connection.js';
import { KindIcon } from './illustration.js';
import { LoadMore, useLastError } from './load-more.js';
import { Notice } from './notice.js';
import { formatMoment } from './time.js';
import { ORDER_LABELS } from './vocabulary.js';
import './orders.css';

const PAGE_SIZE = 100;
/** At most so many requests for the names of the animals, whose ids may be far apart */
const MAX_NAME_PAGES = 5;

/**
 * The orders: the newest first if one page has all, else oldest first, as the service lists them. Loads the next page near
 * the end, as the catalogue does.
 */
export function Orders({ mayReadPets }: { mayReadPets: boolean }) {
  const query = useInfiniteQuery(
    useTRPC().listOrders.infiniteQueryOptions({ limit: PAGE_SIZE }, { getNextPageParam: nextCursor }),
  );
  const error = useLastError(query);
  const announce = useAnnounce();
  const isComplete = query.isSuccess && !query.hasNextPage;
  const listed = query.data?.pages.flat() ?? [];
  const isTurned = isComplete && query.data.pages.length === 1;
  const orders = isTurned ? listed.toReversed() : listed;
  const animals = useNames(mayReadPets ? listed.map(({ petId }) => petId) : []);
  const progress = query.isSuccess
    ? `${isComplete ? 'All shown' : 'Shown so far'}: ${countOrders(orders.length)}`
    : '';
  useEffect(() => {
    if (progress !== '') announce(progress);
  }, [announce, progress]);

  const loadMore = () => void query.fetchNextPage();
  const retry = () => (query.isFetchNextPageError ? loadMore() : void query.refetch());
  return (
    <section className="orders" aria-labelledby="catalogue-heading" aria-busy={query.isFetching}>
      <h2 id="catalogue-heading" tabIndex={-1}>
        Orders
      </h2>
      {isComplete && orders.length === 0 && <NoOrders />}
      {orders.length > 1 && (
        <p className="orders-order">{isTurned ? 'The newest comes first.' : 'The oldest comes first.'}</p>
      )}
      {orders.length > 0 && <OrderTable orders={orders} animals={animals} />}
      {query.isFetching && error === null && orders.length === 0 && <p className="orders-wait">Loading…</p>}
      {error !== null && (
        <Notice error={error} since={query.errorUpdatedAt} isRetrying={query.isFetching} onRetry={retry} />
      )}
      {query.hasNextPage && error === null && (
        <LoadMore
          pages={query.data?.pages.length ?? 0}
          isLoading={query.isFetchingNextPage}
          onLoad={loadMore}
        />
      )}
      {isComplete && orders.length > 0 && (
        <p className="catalogue-end">That is all: {countOrders(orders.length)}.</p>
      )}
    </section>
  );
}

/** The names of animals by their ids, as far as a few pages of the catalogue have them. */
function useNames(ids: readonly number[]): ReadonlyMap<number, string> {
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
        const pets = await client.listPets.query({ cursor: missing[0] - 1, limit: PAGE_SIZE }, { signal });
        for (const { id, name } of pets) names.set(id, name);
        const last = pets.at(-1)?.id ?? Number.POSITIVE_INFINITY;
        missing = missing.filter((id) => id > last);
      }
      return names;
    },
  });
  return data ?? new Map<number, string>();
}

interface OrderTableProps {
  readonly orders: readonly Order[];
  readonly animals: ReadonlyMap<number, string>;
}

function OrderTable({ orders, animals }: OrderTableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: on narrow pages it scrolls, which the keyboard has to reach
    <section className="orders-table" aria-label="All orders" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {['Order', 'Animal', 'Status', 'Quantity', 'Placed'].map((heading) => (
              <th key={heading} scope="col">
                {heading}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {orders.map(({ id, petId, quantity, status, createdAt }) => (
            <tr key={id}>
              <th scope="row">No. {id}</th>
              <td className="orders-animal">
                <bdi title={animals.get(petId)}>{animals.get(petId)}</bdi>{' '}
                <span className="card-number">No. {petId}</span>
              </td>
              <td>
                <span className="badge" data-status={status}>
                  {ORDER_LABELS[status]}
                </span>
              </td>
              <td>{quantity.toLocaleString('en')}</td>
              <td>
                <time dateTime={createdAt}>{formatMoment(new Date(createdAt))}</time>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function NoOrders() {
  return (
    <div className="empty">
      <KindIcon kind="paw" />
      <p className="empty-title">Nobody has ordered yet</p>
      <p>Order an animal in the catalogue, and it appears here.</p>
    </div>
  );
}

function countOrders(count: number): string {
  return count === 1 ? '1 order' : `${count.toLocaleString('en')} orders`;
}
