import type { Database } from '../platform/connections/client.js';
import type { Order, OrdersPage } from './schema.js';

/** All queries on orders. Every method may fail with a database error: see isDatabaseOutage. */
export interface OrderStore {
  /** The page after `cursor`, by ascending id, and the order that follows it, if there is one. */
  list(page: OrdersPage): Promise<Order[]>;
}

export function createOrderStore({ loadPrisma }: Database): OrderStore {
  return {
    async list({ limit, cursor }) {
      const prisma = await loadPrisma();
      const rows = await prisma.order.findMany({
        where: cursor === undefined ? {} : { id: { gt: BigInt(cursor) } },
        orderBy: { id: 'asc' },
        take: limit + 1,
      });
      return rows.map(({ id, petId, quantity, status, createdAt }) => ({
        id: Number(id),
        petId: Number(petId),
        quantity,
        status,
        createdAt: createdAt.toISOString(),
      }));
    },
  };
}
