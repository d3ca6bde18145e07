import { createProcedure } from '../platform/operations/builder.js';
import { answerPage } from '../platform/operations/pagination.js';
import type { Resource } from '../platform/operations/resource.js';
import { orderList, ordersPage } from './schema.js';
import { createOrderStore, type OrderStore } from './store.js';

const procedure = createProcedure<{ readonly orders: OrderStore }>();

const listOrders = procedure
  .meta({
    openapi: {
      method: 'GET',
      path: '/store/orders',
      summary: 'List orders',
      description:
        'A page of orders by ascending id.\n\n' +
        'Experimental: parameters and fields may change within this version.',
      successDescription: 'The orders of the page',
    },
    stability: 'experimental',
    scope: 'orders:read',
  })
  .input(ordersPage)
  .output(orderList)
  .query(async ({ ctx, input }) => answerPage(ctx, input, await ctx.orders.list(input)));

export const orders = {
  name: 'orders',
  description: 'Orders of animals',
  createStore: createOrderStore,
  procedures: { listOrders },
} satisfies Resource<OrderStore>;
