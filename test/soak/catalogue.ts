import { execute } from '@animal-store/platform/testing';
import { pick } from './random.js';

/** Pets that never change: their ids are 1 to this, their statuses alternate. */
export const PET_COUNT = 100_000;
/** The animals after these, whose members the soak changes, and which it orders. All are available at first. */
const SALE_COUNT = 300;
/** Those that are created have higher ids. */
export const LAST_SEEDED = PET_COUNT + SALE_COUNT;
export const SALE_IDS = Array.from({ length: SALE_COUNT }, (_, index) => PET_COUNT + 1 + index);
/** Every other change is of one of these, so that several meet at one animal. */
const BUSY_IDS = SALE_IDS.slice(0, 10);
export const pickForSale = () => pick(pick([SALE_IDS, BUSY_IDS]));
export const isForSale = (id: number) => id > PET_COUNT && id <= LAST_SEEDED;
export const STATUSES = ['available', 'pending', 'sold'] as const;

export interface Pet {
  readonly id: number;
  readonly name: string;
  readonly categoryId: number;
  readonly status: (typeof STATUSES)[number];
}

/** A constraint of the soak's database rejects names that begin with this, which the service accepts. */
export const REJECTED_NAME = 'rejected ';

export async function prepareCatalogue(databaseUrl: string): Promise<void> {
  await execute(
    databaseUrl,
    `INSERT INTO pets (name, category_id, status)
    SELECT 'Pet number ' || n, n % 100 + 1, CASE WHEN n <= $2 THEN ($1::pet_status[])[n % 3 + 1] ELSE 'available' END
    FROM generate_series(1, $3::int) AS n`,
    [STATUSES, PET_COUNT, LAST_SEEDED],
  );
  await execute(
    databaseUrl,
    `ANALYZE pets;
    ALTER TABLE pets ADD CONSTRAINT pets_soak_rejects CHECK (name NOT LIKE '${REJECTED_NAME}%') NOT VALID`,
  );
}

/** One of the pets that prepareCatalogue adds, as it was added. */
export function seededPet(id: number): Pet {
  return { id, name: `Pet number ${id}`, categoryId: (id % 100) + 1, status: statusOf(id) };
}

function statusOf(id: number): Pet['status'] {
  return isForSale(id) ? 'available' : (STATUSES[id % STATUSES.length] as Pet['status']);
}

/** The first ids after a cursor, of those that never change. */
export function seededIds(cursor: number, limit: number, status: Pet['status'] | undefined): number[] {
  const ids: number[] = [];
  for (let id = cursor + 1; id <= PET_COUNT && ids.length < limit; id += 1) {
    if (status === undefined || statusOf(id) === status) ids.push(id);
  }
  return ids;
}
