import type { Database } from '../database/client.js';
import { readSqlState } from '../database/outage.js';
import { ApiError } from '../errors.js';
import { type IdempotencyKey, REMEMBERED_MS } from './idempotency.js';
import { type NewPet, type Pet, type PetsPage, pet as petSchema } from './schema.js';

type PrismaClient = Database['prisma'];

/** The only place with queries on pets. Every method fails as the database does; see isDatabaseOutage. */
export interface PetStore {
  /** The page after `cursor` by ascending id, and whether more follow it. */
  list(page: PetsPage): Promise<{ pets: Pet[]; more: boolean }>;
  /**
   * Creates a pet; under an idempotency key only once within REMEMBERED_MS of `now`, in Unix milliseconds.
   *
   * @throws ApiError idempotency_key_reused, idempotency_key_in_use
   */
  create(newPet: NewPet, idempotencyKey: IdempotencyKey | undefined, now: number): Promise<Creation>;
  /** Forgets the creates whose keys are remembered no longer. */
  forgetExpired(now: number): Promise<void>;
  get(id: number): Promise<Pet | undefined>;
}

interface Creation {
  readonly pet: Pet;
  /** Whether this is the answer of an earlier create */
  readonly isReplay: boolean;
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
    async create(newPet, idempotencyKey, now) {
      if (idempotencyKey !== undefined) return createOnce(prisma, newPet, idempotencyKey, now);
      const data = { ...newPet, categoryId: BigInt(newPet.categoryId) };
      return { pet: toPet(await prisma.pet.create({ data })), isReplay: false };
    },
    async forgetExpired(now) {
      await prisma.idempotentCreate.deleteMany({
        where: { createdAt: { lte: new Date(now - REMEMBERED_MS) } },
      });
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

/** How long a create waits for another with its key, in milliseconds: less than the pool lets a query take. */
const IN_USE_WAIT_MS = 1_000;
/** SQLSTATEs, PostgreSQL's appendix A */
const UNIQUE_VIOLATION = '23505';
const LOCK_NOT_AVAILABLE = '55P03';

/**
 * Creates, or repeats the answer of the create that had the key before. The database alone decides who is first: the
 * key's row and the pet are one statement, and a second one waits for the first to end.
 */
async function createOnce(
  prisma: PrismaClient,
  newPet: NewPet,
  idempotencyKey: IdempotencyKey,
  now: number,
): Promise<Creation> {
  const { apiKeyId, key, call, bodyHash } = idempotencyKey;
  for (;;) {
    const created = await insertOnce(prisma, newPet, idempotencyKey, now);
    if (created !== undefined) return { pet: created, isReplay: false };
    const where = { apiKeyId_key_call: { apiKeyId, key, call } };
    const stored = await prisma.idempotentCreate.findUnique({ where });
    if (stored === null) continue;
    if (stored.createdAt.getTime() <= now - REMEMBERED_MS) {
      await prisma.idempotentCreate.deleteMany({
        where: { apiKeyId, key, call, createdAt: stored.createdAt },
      });
      continue;
    }
    if (!Buffer.from(stored.bodyHash).equals(bodyHash)) {
      throw new ApiError(
        'idempotency_key_reused',
        'This Idempotency-Key was used with another body: choose a new one.',
      );
    }
    return { pet: petSchema.parse(stored.response), isReplay: true };
  }
}

/** Undefined when the key is taken. */
async function insertOnce(
  prisma: PrismaClient,
  { name, categoryId, status }: NewPet,
  { apiKeyId, key, call, bodyHash }: IdempotencyKey,
  now: number,
): Promise<Pet | undefined> {
  const insert = prisma.$queryRaw<{ response: unknown }[]>`
    WITH created AS (
      INSERT INTO pets (name, category_id, status)
      VALUES (${name}, ${BigInt(categoryId)}, ${status}::pet_status)
      RETURNING json_build_object('id', id, 'name', name, 'categoryId', category_id, 'status', status) AS response
    )
    INSERT INTO idempotent_creates (api_key_id, key, call, body_hash, response, created_at)
    SELECT ${apiKeyId}::uuid, ${key}, ${call}, ${bodyHash}, response, ${new Date(now)} FROM created
    RETURNING response`;
  try {
    const wait = prisma.$executeRawUnsafe(`SET LOCAL lock_timeout = ${IN_USE_WAIT_MS}`);
    const [, [row]] = await prisma.$transaction([wait, insert]);
    return petSchema.parse(row?.response);
  } catch (error) {
    const sqlstate = readSqlState(error);
    if (sqlstate === UNIQUE_VIOLATION) return undefined;
    if (sqlstate !== LOCK_NOT_AVAILABLE) throw error;
    throw new ApiError(
      'idempotency_key_in_use',
      'The first request with this Idempotency-Key still runs. Try again.',
    );
  }
}
