import { answerPage, type Resource } from '@animal-store/platform/operations';
import { ApiError, createProcedure } from '../store.js';
import {
  newOrder,
  type Order,
  type OrderReference,
  order,
  orderChange,
  orderList,
  orderReference,
  ordersPage,
} from './schema.js';
import { createOrderStore, type OrderStore } from './store.js';

const procedure = createProcedure<{ readonly orders: OrderStore }>();

const listOrders = procedure
  .meta({
    openapi: {
      method: 'GET',
      path: '/store/orders',
      summary: 'List orders',
      description:
        'A page of orders: by ascending id, or with `order=newest` by descending id. `createdBefore` leaves out orders placed at or ' +
        'after that moment. A page takes longer the more of those it passes over: the newest first before its first order, the ' +
        'oldest first after its last.\n\n' +
        'Experimental: parameters and fields may change within this version.',
      successDescription: 'The orders of the page',
    },
    stability: 'experimental',
    scope: 'orders:read',
    tool: {
      description:
        'Finds orders by `status`, by `petId`, or by both; without either, all orders. Open orders are ' +
        '`placed` or `approved`: make one call for each. To find late orders, such as those older than a day that are not ' +
        'delivered, make both calls with `createdBefore` a day ago.',
    },
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
        'Places an order for an available animal, and makes the animal pending. An animal has at most one open order, ' +
        'however many callers order it at once. The order is open until it is delivered or cancelled.\n\n' +
        'Experimental: it may change within this version.',
      successDescription: 'The order placed',
    },
    stability: 'experimental',
    scope: 'orders:write',
    success: { status: 201, location: ({ id }: Order) => `/store/orders/${id}` },
    idempotent: true,
    errors: ['pet_not_available'],
    // An order takes the animal from all other callers.
    tool: { destructiveHint: true },
  })
  .input(newOrder)
  .output(order)
  .mutation(({ ctx, input }) => ctx.once((key) => ctx.orders.place(input, key)));

const missing = ({ orderId }: OrderReference) =>
  new ApiError('not_found', { message: `There is no order with the id ${orderId}.` });

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
    if (found === undefined) throw missing(input);
    return found;
  });

const updateOrder = procedure
  .meta({
    openapi: {
      method: 'PATCH',
      path: '/store/orders/{orderId}',
      summary: 'Approve, deliver or cancel an order',
      description:
        'A placed order may be approved, delivered or cancelled; an approved order may be delivered or cancelled. The animal is ' +
        'sold once it is delivered, and available again once the order is cancelled. The order is then closed, and its status can no ' +
        'longer change. Setting the same status again changes nothing.\n\n' +
        'Experimental: it may change within this version.',
      successDescription: 'The order as it is now',
    },
    stability: 'experimental',
    scope: 'orders:write',
    errors: ['order_closed'],
    tool: {
      description:
        'Approves, delivers or cancels an order. A `status` of `cancelled` makes the ' +
        'animal available again, and `delivered` makes it sold. Neither can be undone. To find the open ' +
        'order of an animal, call listOrders with its `petId` and an `order` of `newest`.',
      idempotentHint: true,
    },
  })
  .input(orderChange)
  .output(order)
  .mutation(async ({ ctx, input }) => {
    const changed = await ctx.orders.update(input);
    if (changed === undefined) throw missing(input);
    return changed;
  });

export const orders = {
  name: 'orders',
  description: 'Orders of animals',
  createStore: createOrderStore,
  procedures: { listOrders, createOrder, getOrder, updateOrder },
} satisfies Resource<OrderStore>;
