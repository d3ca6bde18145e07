import type { Database } from '../platform/connections/client.js';
import { createInsert } from '../platform/tables/inserts.js';
import { createReads } from '../platform/tables/reads.js';
import { table } from '../platform/tables/table.js';
import type { NewPet, Pet } from './schema.js';

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
    ...createReads(database, pets, { filters: ['status'] }),
    create: createInsert(database, pets),
  };
}
