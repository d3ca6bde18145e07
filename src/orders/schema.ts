import {
  assignedId,
  fieldError,
  INPUT_ERROR,
  instant,
  int64,
  pageInput,
  pageOrder,
  pageOutput,
} from '@animal-store/platform/operations';
import { z } from 'zod';
import { NEXT_STATUSES, ORDER_STATUSES } from '../order-progress.js';

const EXAMPLE = {
  id: 4,
  petId: 7,
  status: 'placed',
  createdAt: '2026-01-31T09:30:00.000Z',
} as const;

const petId = assignedId().meta({ description: 'Identifier of the animal ordered' });

const orderStatus = z
  .enum(ORDER_STATUSES, { error: fieldError(`must be one of ${ORDER_STATUSES.join(', ')}`) })
  .meta({ id: 'OrderStatus', description: 'The progress of an order' });

export const newOrder = z.object({ petId }, { error: INPUT_ERROR }).meta({
  id: 'NewOrder',
  description: 'An animal to order. Unknown members are ignored.',
  examples: [{ petId: EXAMPLE.petId }],
});

export const order = z
  .object({
    id: assignedId().meta({ description: 'Unique identifier: positive and increasing' }),
    petId,
    status: orderStatus,
    createdAt: instant('When the order was placed'),
  })
  .meta({ id: 'Order', description: 'An order of an animal', examples: [EXAMPLE] });

export const orderReference = z.object(
  { orderId: int64().meta({ description: 'Identifier of the order', examples: [EXAMPLE.id] }) },
  { error: INPUT_ERROR },
);

export const orderChange = orderReference
  .extend({
    status: z
      .enum(NEXT_STATUSES, { error: fieldError(`must be one of ${NEXT_STATUSES.join(', ')}`) })
      .meta({ description: 'The new status' }),
  })
  .meta({
    id: 'OrderChange',
    description: 'A change of the status of an order. Unknown members are ignored.',
    examples: [{ status: 'approved' }],
  });

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
  createdBefore: instant('Only orders placed before this moment')
    .meta({ examples: [EXAMPLE.createdAt] })
    .optional(),
  order: pageOrder(),
});

export type NewOrder = z.output<typeof newOrder>;
export type OrderChange = z.output<typeof orderChange>;
export type Order = z.output<typeof order>;
export type OrderReference = z.output<typeof orderReference>;
