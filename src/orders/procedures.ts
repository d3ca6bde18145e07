import { procedure } from '../trpc.js';
import { orders, ordersPage } from './schema.js';

export const listOrders = procedure
  .meta({
    openapi: {
      method: 'GET',
      path: '/store/orders',
      tags: ['orders'],
      summary: 'List orders',
      description:
        'A page of orders by ascending id. While more follow, `Link` carries the address of the next page.\n\n' +
        'Experimental: parameters and fields may change within this version.',
      successDescription: 'The orders of the page',
    },
    stability: 'experimental',
  })
  .input(ordersPage)
  .output(orders)
  .query(async ({ ctx, input }) => {
    const page = await ctx.orders.list(input);
    const last = page.orders.at(-1);
    if (page.more && last !== undefined) ctx.rest?.nextPage(last.id);
    return page.orders;
  });
