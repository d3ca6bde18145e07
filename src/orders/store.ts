import { ONE_OPEN_ORDER, petStatusWith, statusesBefore } from '../order-progress.js';
import type { Database } from '../platform/connections/client.js';
import type { Order as OrderRow } from '../platform/connections/generated/client.js';
import { readUniqueViolation } from '../platform/connections/outage.js';
import { ApiError } from '../platform/errors/api-error.js';
import type { IdempotencyKey } from '../platform/tables/idempotency.js';
import { createReads } from '../platform/tables/reads.js';
import { table } from '../platform/tables/table.js';
import { createTransactions } from '../platform/tables/transactions.js';
import type { NewOrder, Order, OrderChange } from './schema.js';

const orders = table<Order, Omit<Order, 'id'>>('orders', {
  id: 'bigint',
  petId: 'bigint',
  status: 'order_status',
  createdAt: 'timestamptz',
});

/**
 * All queries on orders. What changes an order changes its animal, too, in one transaction. It locks the animal's row before
 * anything else, so that no two deadlock. Every method may fail with a database error: see isDatabaseOutage.
 */
export type OrderStore = ReturnType<typeof createOrderStore>;

export function createOrderStore(database: Database) {
  const transactions = createTransactions(database);
  return {
    ...createReads(database, orders, { filters: ['status', 'petId'] }),

    /**
     * Places an order, and makes the animal pending. Of several orders for one animal at once, one finds it available. The
     * others wait for its row, and then find it pending.
     *
     * @throws ApiError pet_not_available; invalid_request if there is no such animal
     */
    place: ({ petId }: NewOrder, key?: IdempotencyKey) =>
      transactions.once<Order>(key, async (transaction, { lockRow, takeTurn }) => {
        // Also for whoever inserts an order of it with SQL: nobody should wait for that while having the turn.
        if (!(await lockRow('pets', petId))) {
          const fields = { petId: 'is the id of no animal' };
          throw new ApiError('invalid_request', { message: `petId ${fields.petId}.`, fields });
        }
        const { count } = await transaction.pet.updateMany({
          where: { id: petId, status: 'available' },
          data: { status: petStatusWith('placed') },
        });
        if (count === 0) throw new ApiError('pet_not_available');
        await takeTurn('orders');
        return toOrder(await transaction.order.create({ data: { petId } }).catch(throwIfOpen));
      }),

    /**
     * Moves an order on, and its animal with it. Setting the status that it has changes nothing.
     *
     * @returns undefined if there is no such order
     * @throws ApiError order_closed
     */
    update: ({ orderId, status }: OrderChange): Promise<Order | undefined> =>
      transactions.run(async (transaction, { lockRow }) => {
        const where = { id: orderId };
        const found = await transaction.order.findUnique({ where, select: { petId: true } });
        if (found === null) return undefined;
        // It never changes.
        await lockRow('pets', found.petId);
        const [changed] = await transaction.order.updateManyAndReturn({
          where: { ...where, status: { in: statusesBefore(status) } },
          data: { status },
        });
        if (changed === undefined) {
          // Prisma cannot read a status that a later version has added, so only this one is looked for.
          const unchanged = await transaction.order.findUnique({ where: { ...where, status } });
          if (unchanged === null) throw new ApiError('order_closed');
          return toOrder(unchanged);
        }
        await transaction.pet.update({
          where: { id: changed.petId },
          data: { status: petStatusWith(status) },
        });
        return toOrder(changed);
      }),
  };
}

/** With SQL, somebody has made the animal available while its order is open, or added an order and left the animal available. */
function throwIfOpen(error: unknown): never {
  throw readUniqueViolation(error) === ONE_OPEN_ORDER ? new ApiError('pet_not_available') : error;
}

function toOrder({ id, petId, status, createdAt }: OrderRow): Order {
  return { id: Number(id), petId: Number(petId), status, createdAt: createdAt.toISOString() };
}
