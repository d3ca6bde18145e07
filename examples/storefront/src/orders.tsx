import type { Pet, Scope } from '@animal-store/client';
import { useEffect, useRef } from 'react';
import { useAnnounce } from './announcer.js';
import { useChoiceInAddress } from './choice-in-address.js';
import { KindIcon } from './illustration.js';
import { LoadMore, useLastError } from './load-more.js';
import { Notice } from './notice.js';
import { useNames, useOrderPages } from './order-pages.js';
import { OrderTable } from './order-table.js';
import { StatusFilter } from './status-filter.js';
import { showOrders } from './views.js';
import { ORDER_LABELS, ORDER_STATUSES, type OrderStatus } from './vocabulary.js';
import './orders.css';

const ANIMAL = /^\d{1,15}$/;

export interface OrdersProps {
  /** Of the key: what it may do with the orders, and whether it may read the names of the animals */
  readonly scopes: readonly Scope[];
  /** Called with what has changed of an animal. */
  readonly onPetChange: (pet: Pick<Pet, 'id' | 'status'>) => void;
}

/** The orders, the newest first, of one status or animal or all. Loads the next page near the end, as the catalogue does. */
export function Orders(props: OrdersProps) {
  const [status, setStatus] = useChoiceInAddress('progress', ORDER_STATUSES);
  const [animal] = useChoiceInAddress('animal', ANIMAL);
  const heading = useRef<HTMLHeadingElement>(null);
  // Who comes from the card of an animal had the focus there.
  useEffect(() => {
    if (animal !== undefined) heading.current?.focus();
  }, [animal]);
  return (
    <section className="orders" aria-labelledby="catalogue-heading">
      <header className="catalogue-head">
        <h2 id="catalogue-heading" ref={heading} tabIndex={-1}>
          {animal === undefined ? 'Orders' : `Orders of No. ${animal}`}
        </h2>
        <div className="filters">
          {animal !== undefined && (
            <button type="button" className="button quiet small" onClick={() => showOrders()}>
              Orders of all animals
            </button>
          )}
          <StatusFilter
            legend="Show orders by status"
            labels={ORDER_LABELS}
            status={status}
            onChange={setStatus}
          />
        </div>
      </header>
      <OrderList key={`${status} ${animal}`} status={status} animal={animal} {...props} />
    </section>
  );
}

interface OrderListProps extends OrdersProps {
  readonly status: OrderStatus | undefined;
  readonly animal: string | undefined;
}

function OrderList({ status, animal, scopes, onPetChange }: OrderListProps) {
  const query = useOrderPages(status, animal === undefined ? undefined : Number(animal));
  const error = useLastError(query);
  const announce = useAnnounce();
  const isComplete = query.isSuccess && !query.hasNextPage;
  const orders = query.data?.pages.flat() ?? [];
  const animals = useNames(scopes.includes('pets:read') ? orders.map(({ petId }) => petId) : []);
  const progress = query.isSuccess
    ? `${isComplete ? 'All shown' : 'Shown so far'}: ${countOrders(orders.length)}`
    : '';
  useEffect(() => {
    if (progress !== '') announce(progress);
  }, [announce, progress]);

  const loadMore = () => void query.fetchNextPage();
  const retry = () => (query.isFetchNextPageError ? loadMore() : void query.refetch());
  if (isComplete && orders.length === 0)
    return <NoOrders status={status} isOfAnimal={animal !== undefined} />;
  return (
    <>
      {orders.length > 0 && (
        <OrderTable
          orders={orders}
          animals={animals}
          mayChange={scopes.includes('orders:write')}
          onPetChange={onPetChange}
        />
      )}
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
      {isComplete && <p className="catalogue-end">That is all: {countOrders(orders.length)}.</p>}
    </>
  );
}

function NoOrders({ status, isOfAnimal }: { status: OrderStatus | undefined; isOfAnimal: boolean }) {
  const isAny = status === undefined && !isOfAnimal;
  const which = isOfAnimal ? 'No order of this animal' : 'No order';
  const title =
    status === undefined ? 'Nobody has ordered it' : `${which} is ${ORDER_LABELS[status].toLowerCase()}`;
  return (
    <div className="empty">
      <KindIcon kind="paw" />
      <p className="empty-title">{isAny ? 'Nobody has ordered yet' : title}</p>
      {isAny && <p>Order an animal in the catalogue, and it appears here.</p>}
    </div>
  );
}

function countOrders(count: number): string {
  return count === 1 ? '1 order' : `${count.toLocaleString('en')} orders`;
}
