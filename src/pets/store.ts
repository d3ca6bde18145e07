import type { Database } from '../database/client.js';
import type { NewPet, Pet, PetsPage } from './schema.js';

/** The only place with queries on pets. Every method fails as the database does; see isDatabaseOutage. */
export interface PetStore {
  /** The page after `cursor` by ascending id, and whether more follow it. */
  list(page: PetsPage): Promise<{ pets: Pet[]; more: boolean }>;
  create(newPet: NewPet): Promise<Pet>;
  get(id: number): Promise<Pet | undefined>;
}

interface PetRow {
  id: bigint;
  name: string;
  categoryId: bigint;
  status: Pet['status'];
}

export function createPetStore({ prisma }: Database): PetStore {
  return {
    async list({ limit, status, cursor }) {
      const rows = await prisma.pet.findMany({
        where: {
          ...(status === undefined ? {} : { status }),
          ...(cursor === undefined ? {} : { id: { gt: BigInt(cursor) } }),
        },
        orderBy: { id: 'asc' },
        take: limit + 1,
      });
      return { pets: rows.slice(0, limit).map(toPet), more: rows.length > limit };
    },
    async create({ name, categoryId, status }) {
      return toPet(await prisma.pet.create({ data: { name, categoryId: BigInt(categoryId), status } }));
    },
    async get(id) {
      const row = await prisma.pet.findUnique({ where: { id: BigInt(id) } });
      return row === null ? undefined : toPet(row);
    },
  };
}

/** The database holds only integers that a number carries exactly, by constraint. */
function toPet({ id, name, categoryId, status }: PetRow): Pet {
  return { id: Number(id), name, categoryId: Number(categoryId), status };
}
