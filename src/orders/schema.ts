import { z } from 'zod';
import { assignedId, INPUT_ERROR, instant, integer } from '../platform/operations/input.js';
import { pageInput, pageOutput } from '../platform/operations/pagination.js';

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
    status: z.enum(STATUSES).meta({ id: 'OrderStatus', description: 'The progress of an order' }),
    createdAt: instant('When the order was placed'),
  })
  .meta({ id: 'Order', description: 'An order of animals', examples: [EXAMPLE] });

export const orderList = pageOutput(order).meta({
  id: 'Orders',
  description: 'Orders in ascending order of id',
  examples: [[EXAMPLE]],
});

export const ordersPage = pageInput({});

export type NewOrder = z.output<typeof newOrder>;
export type Order = z.output<typeof order>;
