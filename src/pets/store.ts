import type { Database } from '../platform/connections/client.js';
import { createInsert } from '../platform/tables/inserts.js';
import { createReads } from '../platform/tables/reads.js';
import { table } from '../platform/tables/table.js';
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
  return {
    ...createReads(database, pets, { filters: ['status', 'categoryId'] }),
    create: createInsert(database, pets),
    /** Sets only the members that are given, so that changes of other members at the same time are kept. */
    async update({ petId, ...change }: PetChange): Promise<Pet | undefined> {
      const prisma = await database.loadPrisma();
      const [changed] = await prisma.pet.updateManyAndReturn({ where: { id: petId }, data: change });
      return changed && { ...changed, id: Number(changed.id), categoryId: Number(changed.categoryId) };
    },
  };
}
