import { type InSchema, readUniqueViolation } from '@animal-store/platform/connections';
import {
  createClaimingInsert,
  createReads,
  createRowStatement,
  type IdempotencyKey,
  type StatementParts,
  table,
} from '@animal-store/platform/tables';
import { ONE_OPEN_ORDER, type OrderStatus, petStatusWith, statusesBefore } from '../order-progress.js';
import { ApiError, type Database } from '../store.js';
import type { NewOrder, Order, OrderChange } from './schema.js';

const orders = table<Order, Omit<Order, 'id'>>('orders', {
  id: 'bigint',
  petId: 'bigint',
  status: 'order_status',
  createdAt: 'timestamptz',
});

/**
 * All queries on orders. One statement changes an order and its animal. It locks the animal's row before anything else, so
 * that no two deadlock. It decides by locked rows, which it sees as they are now, and all other rows as when it began. Every
 * method may fail with a database error: see isDatabaseOutage.
 */
export type OrderStore = ReturnType<typeof createOrderStore>;

export function createOrderStore(database: Database) {
  const place = createClaimingInsert<Order, NewOrder>(database, orders, {
    fields: ['petId'],
    table: 'pets',
    by: 'petId',
    isFree: "status = 'available'",
    set: `status = '${petStatusWith('placed')}'`,
    refuse(_, isThere) {
      if (isThere) return new ApiError('pet_not_available');
      const fields = { petId: 'is not the id of an animal' };
      return new ApiError('invalid_request', { message: `petId ${fields.petId}.`, fields });
    },
  });
  const move = createRowStatement(database, orders, {
    name: 'orders-move',
    given: { orderId: 'bigint', status: 'order_status', from: 'order_status[]', petStatus: 'pet_status' },
    text: (parts) => moveSql(database.inSchema, parts),
    toOutcome({ is_there, output }: MoveResult) {
      if (output !== null) return { order: output };
      return is_there ? 'busy' : { order: undefined };
    },
    toRow: ({ orderId }: Move) => orderId,
  });
  return {
    ...createReads(database, orders, {
      filters: ['status', 'petId'],
      before: { member: 'createdBefore', field: 'createdAt' },
    }),

    /**
     * Places an order, and makes the animal pending. Of several simultaneous orders for one animal, one succeeds.
     *
     * @throws ApiError pet_not_available; invalid_request if there is no such animal
     */
    place: ({ petId }: NewOrder, key?: IdempotencyKey) => place({ petId }, key).catch(throwIfOpen),

    /**
     * Changes the status of an order, and of its animal. Setting the status that the order already has changes nothing.
     *
     * @returns undefined if there is no such order
     * @throws ApiError order_closed
     */
    async update({ orderId, status }: OrderChange): Promise<Order | undefined> {
      const from = statusesBefore(status);
      const { order } = await move({ orderId, status, from, petStatus: petStatusWith(status) });
      if (order !== undefined && order.status !== status) throw new ApiError('order_closed');
      return order;
    },
  };
}

/** The new status of an order, the statuses that may precede it, and what the animal becomes. */
interface Move extends OrderChange {
  readonly from: readonly OrderStatus[];
  readonly petStatus: ReturnType<typeof petStatusWith>;
}

interface MoveResult {
  readonly is_there: boolean;
  /** The order as it is now, moved or not; null if it was passed over */
  readonly output: Order | null;
}

/**
 * Moves orders and their animals. The statements run in the order of their locks, each of which waits for the one before:
 *
 * 1. `given`: each order with the id of its animal. It locks nothing, which is safe because the animal of an order never changes.
 * 2. `animals`: locks the animals, before any order, as placing an order does.
 * 3. `found`: locks the orders of the animals that are locked, and reads their present status.
 * 4. `moved`: sets the status of each order that may be moved from its present one.
 * 5. `changed`: sets the status of the animals of those orders.
 *
 * It returns a row for each call, in their order. An order that was passed over, because others have it or its animal locked,
 * has no output.
 */
function moveSql(inSchema: InSchema, { given, lock }: StatementParts): string {
  return `
    WITH given AS MATERIALIZED (
      SELECT given.*, pet_id FROM ${given} LEFT JOIN ${inSchema('orders')} ON id = "orderId"
    ), animals AS MATERIALIZED (
      SELECT id FROM ${inSchema('pets')} WHERE id IN (SELECT pet_id FROM given) ${lock}
    ), found AS MATERIALIZED (
      SELECT id, status AS current, ${orders.json} AS output FROM ${inSchema('orders')}
      WHERE id IN (SELECT "orderId" FROM given JOIN animals ON animals.id = given.pet_id) ${lock}
    ), moved AS (
      UPDATE ${inSchema('orders')} AS moving SET status = given.status
      FROM given JOIN found ON found.id = "orderId"
      WHERE moving.id = found.id AND current = ANY ("from")
      RETURNING moving.id, moving.pet_id, "petStatus", (SELECT ${orders.json} FROM (SELECT moving.*) AS row) AS output
    ), changed AS (
      UPDATE ${inSchema('pets')} AS animal SET status = "petStatus" FROM moved
      WHERE animal.id = moved.pet_id AND animal.status <> "petStatus"
    )
    SELECT given.pet_id IS NOT NULL AS is_there, coalesce(moved.output, found.output) AS output
    FROM given LEFT JOIN found ON found.id = "orderId" LEFT JOIN moved ON moved.id = "orderId" ORDER BY row_position`;
}

/** Only SQL leads here: it made the animal available despite an open order, or added an order without making it pending. */
function throwIfOpen(error: unknown): never {
  throw readUniqueViolation(error) === ONE_OPEN_ORDER ? new ApiError('pet_not_available') : error;
}
