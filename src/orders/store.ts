import type { Database } from '../platform/connections/client.js';
import type { Order as OrderRow } from '../platform/connections/generated/client.js';
import { ApiError } from '../platform/errors/api-error.js';
import type { IdempotencyKey } from '../platform/tables/idempotency.js';
import { createOnce } from '../platform/tables/once.js';
import { createReads } from '../platform/tables/reads.js';
import { table } from '../platform/tables/table.js';
import type { NewOrder, Order } from './schema.js';

const orders = table<Order, Omit<Order, 'id'>>('orders', {
  id: 'bigint',
  petId: 'bigint',
  quantity: 'integer',
  status: 'order_status',
  createdAt: 'timestamptz',
});

/**
 * All queries on orders. An order changes two tables, with Prisma; reads never wait behind that. Every method may fail with a
 * database error: see isDatabaseOutage.
 */
export type OrderStore = ReturnType<typeof createOrderStore>;

export function createOrderStore(database: Database) {
  const once = createOnce(database);
  return {
    ...createReads(database, orders, { filters: ['status', 'petId'] }),

    /**
     * Places an order, and makes the animal pending. Of several orders for one animal at once, one finds it available. The
     * others wait for its row, and then find it pending.
     *
     * @throws ApiError pet_not_available; invalid_request if there is no such animal
     */
    place: ({ petId, quantity }: NewOrder, key?: IdempotencyKey) =>
      once<Order>(key, async (transaction, takeTurn) => {
        const { count } = await transaction.pet.updateMany({
          where: { id: petId, status: 'available' },
          data: { status: 'pending' },
        });
        if (count === 0) {
          if ((await transaction.pet.count({ where: { id: petId } })) > 0)
            throw new ApiError('pet_not_available');
          const fields = { petId: 'is the id of no animal' };
          throw new ApiError('invalid_request', { message: `petId ${fields.petId}.`, fields });
        }
        await takeTurn('orders');
        return toOrder(await transaction.order.create({ data: { petId, quantity } }));
      }),
  };
}

function toOrder({ id, petId, quantity, status, createdAt }: OrderRow): Order {
  return { id: Number(id), petId: Number(petId), quantity, status, createdAt: createdAt.toISOString() };
}
