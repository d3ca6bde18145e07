import { z } from 'zod';
import {
  assignedId,
  fieldError,
  INPUT_ERROR,
  instant,
  int64,
  integer,
} from '../platform/operations/input.js';
import { pageInput, pageOrder, pageOutput } from '../platform/operations/pagination.js';

const STATUSES = ['placed', 'approved', 'delivered'] as const;
const QUANTITY_MAX = 2 ** 31 - 1;

const EXAMPLE = {
  id: 4,
  petId: 7,
  quantity: 1,
  status: 'placed',
  createdAt: '2026-01-31T09:30:00.000Z',
} as const;

const petId = assignedId().meta({ description: 'Identifier of the animal ordered' });
const quantity = integer(1, QUANTITY_MAX).meta({ description: 'How many are ordered' });

const orderStatus = z
  .enum(STATUSES, { error: fieldError(`must be one of ${STATUSES.join(', ')}`) })
  .meta({ id: 'OrderStatus', description: 'The progress of an order' });

export const newOrder = z.object({ petId, quantity: quantity.default(1) }, { error: INPUT_ERROR }).meta({
  id: 'NewOrder',
  description: 'An animal to order. Unknown members are ignored.',
  examples: [{ petId: EXAMPLE.petId, quantity: EXAMPLE.quantity }],
});

export const order = z
  .object({
    id: assignedId().meta({ description: 'Unique identifier: positive and increasing' }),
    petId,
    quantity,
    status: orderStatus,
    createdAt: instant('When the order was placed'),
  })
  .meta({ id: 'Order', description: 'An order of animals', examples: [EXAMPLE] });

export const orderReference = z.object(
  { orderId: int64().meta({ description: 'Identifier of the order', examples: [EXAMPLE.id] }) },
  { error: INPUT_ERROR },
);

export const orderList = pageOutput(order).meta({
  id: 'Orders',
  description: 'Orders by ascending id, or the newest first',
  examples: [[EXAMPLE]],
});

export const ordersPage = pageInput({
  status: orderStatus.meta({ description: 'Filter by progress' }).optional(),
  petId: assignedId()
    .meta({ description: 'Filter by animal', examples: [EXAMPLE.petId] })
    .optional(),
  order: pageOrder(),
});

export type NewOrder = z.output<typeof newOrder>;
export type Order = z.output<typeof order>;
