import { and, eq, inArray } from 'drizzle-orm';
import { ApiError } from './baseline-input.js';
import type { PetChange } from './hono-input.js';
import { db, orders, pets } from './hono-queries.js';

/*
 * The transactions of bench/hono.ts: the changes that concern an animal and its orders. They lock rows as the statements of
 * bench/baseline-orders.ts do.
 */

type Pet = typeof pets.$inferSelect;

const OPEN_STATUSES = ['placed', 'approved'] as const;

/** Returns undefined for a pet that is not available. */
export function placeOrder(petId: number) {
  return db.transaction(async (transaction) => {
    const taken = await transaction
      .update(pets)
      .set({ status: 'pending' })
      .where(and(eq(pets.id, petId), eq(pets.status, 'available')))
      .returning({ id: pets.id });
    if (taken.length === 0) return undefined;
    const [order] = await transaction.insert(orders).values({ petId }).returning();
    return order;
  });
}

/** Returns undefined if there is no such pet. */
export function changeStatus(petId: number, change: PetChange & { status: Pet['status'] }) {
  return db.transaction(async (transaction) => {
    const [pet] = await transaction.select().from(pets).where(eq(pets.id, petId)).for('update');
    if (pet === undefined) return undefined;
    if (pet.status !== change.status) {
      const open = await transaction
        .select({ id: orders.id })
        .from(orders)
        .where(and(eq(orders.petId, petId), inArray(orders.status, OPEN_STATUSES)));
      if (open.length > 0) throw new ApiError(409, 'pet_has_open_order', 'The animal has an open order.');
    }
    const [changed] = await transaction.update(pets).set(change).where(eq(pets.id, petId)).returning();
    return changed;
  });
}

/** Returns undefined if there is no such order. */
export function changeOrder(orderId: number, status: 'approved' | 'delivered' | 'cancelled') {
  return db.transaction(async (transaction) => {
    const [order] = await transaction.select().from(orders).where(eq(orders.id, orderId)).for('update');
    if (order === undefined || order.status === status) return order;
    if (!OPEN_STATUSES.some((open) => open === order.status)) {
      throw new ApiError(409, 'order_closed', 'The order is closed.');
    }
    if (status !== 'approved') {
      const petStatus = status === 'delivered' ? 'sold' : 'available';
      await transaction.update(pets).set({ status: petStatus }).where(eq(pets.id, order.petId));
    }
    const [changed] = await transaction
      .update(orders)
      .set({ status })
      .where(eq(orders.id, orderId))
      .returning();
    return changed;
  });
}
