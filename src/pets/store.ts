import { createChange, createInsert, createReads, table } from '@animal-store/platform/tables';
import { OPEN_STATUSES } from '../order-progress.js';
import { ApiError, type Database } from '../store.js';
import type { NewPet, Pet, PetChange } from './schema.js';

const pets = table<Pet, NewPet>('pets', {
  id: 'bigint',
  name: 'text',
  categoryId: 'bigint',
  status: 'pet_status',
});

const OPEN = OPEN_STATUSES.map((status) => `'${status}'`).join(', ');

/** Messages that name what refused the change */
const MESSAGES = {
  pet_status_changed: (status: string) =>
    `The status of the animal is ${status} by now, so nothing was changed: load the animal again.`,
  pet_has_open_order: (orderId: string) =>
    `The animal has the open order ${orderId}, so only the order can change its status: deliver or cancel it.`,
};

/** All queries on pets. Every method may fail with a database error: see isDatabaseOutage. */
export type PetStore = ReturnType<typeof createPetStore>;

export function createPetStore(database: Database) {
  const change = createChange(database, pets, {
    fields: ['name', 'categoryId', 'status'],
    conditions: { expectedStatus: 'status' },
    refusals: {
      pet_status_changed: 'CASE WHEN seen.status <> given."expectedStatus" THEN seen.status END',
      pet_has_open_order: `
        SELECT id FROM ${database.inSchema('orders')} WHERE pet_id = seen.id AND status IN (${OPEN}) AND seen.status <> given.status`,
    },
  });
  return {
    ...createReads(database, pets, { filters: ['status', 'categoryId'] }),
    create: createInsert(database, pets),

    /**
     * Sets only the given members, so that simultaneous changes of other members are kept. While an animal has an open
     * order, only the order can change its status. An animal whose status is not the expected one is left as it is.
     *
     * @returns undefined if there is no such animal
     * @throws ApiError pet_status_changed, pet_has_open_order
     */
    async update({ petId, ...members }: PetChange): Promise<Pet | undefined> {
      const changed = await change(petId, members);
      if ('output' in changed) return changed.output;
      throw new ApiError(changed.refusal, { message: MESSAGES[changed.refusal](changed.detail) });
    },
  };
}
