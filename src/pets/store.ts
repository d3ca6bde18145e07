import { OPEN_STATUSES } from '../order-progress.js';
import type { Database } from '../platform/connections/client.js';
import type { Pet as PetRow } from '../platform/connections/generated/client.js';
import { ApiError } from '../platform/errors/api-error.js';
import { createInsert } from '../platform/tables/inserts.js';
import { createReads } from '../platform/tables/reads.js';
import { table } from '../platform/tables/table.js';
import { createTransactions } from '../platform/tables/transactions.js';
import type { NewPet, Pet, PetChange } from './schema.js';

const pets = table<Pet, NewPet>('pets', {
  id: 'bigint',
  name: 'text',
  categoryId: 'bigint',
  status: 'pet_status',
});

/** All queries on pets. Every method may fail with a database error: see isDatabaseOutage. */
export type PetStore = ReturnType<typeof createPetStore>;

export function createPetStore(database: Database) {
  const transactions = createTransactions(database);
  const reads = createReads(database, pets, { filters: ['status', 'categoryId'] });
  return {
    ...reads,
    create: createInsert(database, pets),

    /**
     * Sets only the members that are given, so that changes of other members at the same time are kept. The status of an
     * animal with an open order changes with the order alone.
     *
     * @returns undefined if there is no such animal
     * @throws ApiError pet_has_open_order
     */
    async update({ petId, ...change }: PetChange): Promise<Pet | undefined> {
      const query = { where: { id: petId }, data: change };
      const { status } = change;
      if (status === undefined) {
        const prisma = await database.loadPrisma();
        const { count } = await prisma.pet.updateMany(query);
        // Prisma cannot read a status that a later version has added.
        return count === 0 ? undefined : reads.get(petId);
      }
      return transactions.run(async (transaction, { lockRow }) => {
        await lockRow('pets', petId);
        const order = await transaction.order.findFirst({
          where: { petId, status: { in: OPEN_STATUSES }, pet: { status: { not: status } } },
        });
        if (order !== null) throw hasOpenOrder(order);
        return toPet((await transaction.pet.updateManyAndReturn(query))[0]);
      });
    },
  };
}

const hasOpenOrder = ({ id }: { readonly id: bigint }) =>
  new ApiError('pet_has_open_order', {
    message: `The animal has the open order ${id}, and its status changes with that: deliver or cancel the order.`,
  });

const toPet = (row: PetRow | undefined): Pet | undefined =>
  row && { ...row, id: Number(row.id), categoryId: Number(row.categoryId) };
