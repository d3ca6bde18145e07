import { ApiError } from '../platform/errors/api-error.js';
import { createProcedure } from '../platform/operations/builder.js';
import { answerPage } from '../platform/operations/pagination.js';
import type { Resource } from '../platform/operations/resource.js';
import { newOrder, type Order, order, orderList, orderReference, ordersPage } from './schema.js';
import { createOrderStore, type OrderStore } from './store.js';

const procedure = createProcedure<{ readonly orders: OrderStore }>();

const listOrders = procedure
  .meta({
    openapi: {
      method: 'GET',
      path: '/store/orders',
      summary: 'List orders',
      description:
        'A page of orders: by ascending id, or with `order=newest` by descending id.\n\n' +
        'Experimental: parameters and fields may change within this version.',
      successDescription: 'The orders of the page',
    },
    stability: 'experimental',
    scope: 'orders:read',
  })
  .input(ordersPage)
  .output(orderList)
  .query(async ({ ctx, input }) => answerPage(ctx, input, await ctx.orders.list(input)));

const createOrder = procedure
  .meta({
    openapi: {
      method: 'POST',
      path: '/store/orders',
      summary: 'Order an animal',
      description:
        'Places an order for an animal that is available, and makes the animal pending. Of several orders for one ' +
        'animal, one is placed.\n\n' +
        'Experimental: it may change within this version.',
      successDescription: 'The order placed',
    },
    stability: 'experimental',
    scope: 'orders:write',
    success: { status: 201, location: ({ id }: Order) => `/store/orders/${id}` },
    idempotent: true,
    errors: ['pet_not_available'],
  })
  .input(newOrder)
  .output(order)
  .mutation(({ ctx, input }) => ctx.once((key) => ctx.orders.place(input, key)));

const getOrder = procedure
  .meta({
    openapi: {
      method: 'GET',
      path: '/store/orders/{orderId}',
      summary: 'Get an order',
      description:
        'Fetches one order by its identifier.\n\n' + 'Experimental: fields may change within this version.',
      successDescription: 'The order',
    },
    stability: 'experimental',
    scope: 'orders:read',
  })
  .input(orderReference)
  .output(order)
  .query(async ({ ctx, input }) => {
    const found = await ctx.orders.get(input.orderId);
    if (found === undefined)
      throw new ApiError('not_found', { message: `There is no order with the id ${input.orderId}.` });
    return found;
  });

export const orders = {
  name: 'orders',
  description: 'Orders of animals',
  createStore: createOrderStore,
  procedures: { listOrders, createOrder, getOrder },
} satisfies Resource<OrderStore>;
