import { z } from 'zod';
import { assignedId, instant, integer } from '../platform/operations/input.js';
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

export const order = z
  .object({
    id: assignedId().meta({ description: 'Unique identifier: positive and increasing' }),
    petId: assignedId().meta({ description: 'Identifier of the animal ordered' }),
    quantity: integer(1, QUANTITY_MAX).meta({ description: 'How many are ordered' }),
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

export type Order = z.output<typeof order>;
export type OrdersPage = z.output<typeof ordersPage>;
