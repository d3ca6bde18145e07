import type { Order, Pet } from '@animal-store/client';
import { useId } from 'react';
import { OrderActions } from './order-actions.js';
import { formatMoment } from './time.js';
import { ORDER_LABELS } from './vocabulary.js';

interface OrderTableProps {
  readonly orders: readonly Order[];
  /** The names of animals by their ids, as far as they are known */
  readonly animals: ReadonlyMap<number, string>;
  readonly mayChange: boolean;
  readonly onPetChange: (pet: Pick<Pet, 'id' | 'status'>) => void;
}

export function OrderTable({ orders, animals, ...row }: OrderTableProps) {
  const headings = ['Order', 'Animal', 'Status', 'Placed', ...(row.mayChange ? ['What next'] : [])];
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: on narrow pages it scrolls, which the keyboard has to reach
    <section className="orders-table" aria-label="All orders" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {headings.map((heading) => (
              <th key={heading} scope="col">
                {heading}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {orders.map((order) => (
            <Row key={order.id} order={order} name={animals.get(order.petId)} {...row} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

interface RowProps extends Pick<OrderTableProps, 'mayChange' | 'onPetChange'> {
  readonly order: Order;
  readonly name: string | undefined;
}

function Row({ order, name, mayChange, onPetChange }: RowProps) {
  const labelId = useId();
  const { id, petId, status, createdAt } = order;
  return (
    <tr tabIndex={-1}>
      <th id={labelId} scope="row">
        No. {id}
      </th>
      <td className="orders-animal">
        <bdi title={name}>{name}</bdi> <span className="card-number">No. {petId}</span>
      </td>
      <td>
        <span className="badge" data-status={status}>
          {ORDER_LABELS[status]}
        </span>
      </td>
      <td>
        <time dateTime={createdAt}>{formatMoment(new Date(createdAt))}</time>
      </td>
      {mayChange && (
        <td className="orders-next">
          <OrderActions order={order} labelId={labelId} onPetChange={onPetChange} />
        </td>
      )}
    </tr>
  );
}
