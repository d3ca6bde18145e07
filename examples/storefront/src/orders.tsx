import type { Order } from '@animal-store/client';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import { useAnnounce } from './announcer.js';
import { LoadMore, useLastError } from './catalogue.js';
import { useTRPC } from './connection.js';
import { KindIcon } from './illustration.js';
import { Notice } from './notice.js';
import { formatMoment } from './time.js';
import { ORDER_LABELS } from './vocabulary.js';
import './orders.css';

const PAGE_SIZE = 50;

/** The orders, oldest first, as the service lists them. Loads the next page near the end, as the catalogue does. */
export function Orders() {
  const query = useInfiniteQuery(
    useTRPC().listOrders.infiniteQueryOptions(
      { limit: PAGE_SIZE },
      { getNextPageParam: (page) => (page.length < PAGE_SIZE ? undefined : page.at(-1)?.id) },
    ),
  );
  const error = useLastError(query);
  const announce = useAnnounce();
  const orders = query.data?.pages.flat() ?? [];
  const isComplete = query.isSuccess && !query.hasNextPage;
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
      {orders.length > 0 && <OrderTable orders={orders} />}
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

function OrderTable({ orders }: { orders: readonly Order[] }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: on narrow pages it scrolls, which the keyboard has to reach
    <section className="orders-table" aria-label="All orders" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {['Order', 'Animal', 'Quantity', 'Status', 'Placed'].map((heading) => (
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
              <td>No. {petId}</td>
              <td>{quantity.toLocaleString('en')}</td>
              <td>
                <span className="badge" data-status={status}>
                  {ORDER_LABELS[status]}
                </span>
              </td>
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
      <p>Orders come from the store itself; they appear here as soon as there are some.</p>
    </div>
  );
}

function countOrders(count: number): string {
  return count === 1 ? '1 order' : `${count.toLocaleString('en')} orders`;
}
