import type { Database } from '../database/client.js';
import type { Order, OrdersPage } from './schema.js';

/** The only place with queries on orders. Every method fails as the database does; see isDatabaseOutage. */
export interface OrderStore {
  /** The page after `cursor` by ascending id, and whether more follow it. */
  list(page: OrdersPage): Promise<{ orders: Order[]; more: boolean }>;
}

export function createOrderStore({ prisma }: Database): OrderStore {
  return {
    async list({ limit, cursor }) {
      const rows = await prisma.order.findMany({
        where: cursor === undefined ? {} : { id: { gt: BigInt(cursor) } },
        orderBy: { id: 'asc' },
        take: limit + 1,
      });
      const orders = rows.slice(0, limit).map(({ id, petId, quantity, status, createdAt }) => ({
        id: Number(id),
        petId: Number(petId),
        quantity,
        status,
        createdAt: createdAt.toISOString(),
      }));
      return { orders, more: rows.length > limit };
    },
  };
}
