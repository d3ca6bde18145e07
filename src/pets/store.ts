import { setTimeout as delay } from 'node:timers/promises';
import DataLoader from 'dataloader';
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

/**
 * What a statement finds comes as one JSON value: read in a third of the time that its rows and columns would take one by
 * one. The database holds only integers that a JavaScript number carries exactly, by constraint.
 */
const petAsJson = `json_build_object('id', id, 'name', name, 'categoryId', category_id, 'status', status)`;
const page = (condition: string, order: string) => `
  SELECT coalesce(json_agg(pet), '[]') AS found
  FROM (SELECT ${petAsJson} AS pet FROM pets WHERE ${condition} ORDER BY ${order} LIMIT $2) AS page`;

/** The most animals looked up by one statement */
const GETS_MAX = 100;

/** Named, so that PostgreSQL parses and plans them once per connection. */
const statements = {
  list: { name: 'pets-list', text: page('id > $1', 'id') },
  /**
   * The pets of the status, said so that only the index on both answers it: asked for `status = $3 AND id > $1`,
   * PostgreSQL takes the statuses to be spread evenly over the ids, and walks through all ids where they are not.
   */
  listByStatus: {
    name: 'pets-list-by-status',
    text: page('(status, id) > ($3, $1) AND status <= $3', 'status, id'),
  },
  get: {
    name: 'pets-get',
    text: `SELECT coalesce(json_agg(${petAsJson}), '[]') AS found FROM pets WHERE id = ANY ($1)`,
  },
  create: {
    name: 'pets-create',
    text: `INSERT INTO pets (name, category_id, status) VALUES ($1, $2, $3) RETURNING ${petAsJson} AS found`,
  },
};

export function createPetStore({ prisma, reads, writes }: Database): PetStore {
  // The gets of one turn of the event loop are one statement: a batch of ten takes half of what ten statements took.
  const gets = new DataLoader<number, Pet | undefined>(
    async (ids) => {
      const [row] = await reads.query<{ found: Pet[] }>(statements.get, [ids]);
      const found = new Map(row?.found.map((pet) => [pet.id, pet]));
      return ids.map((id) => found.get(id));
    },
    { cache: false, maxBatchSize: GETS_MAX },
  );
  return {
    async list({ limit, status, cursor = 0 }) {
      const [row] = await (status === undefined
        ? reads.query<{ found: Pet[] }>(statements.list, [cursor, limit + 1])
        : reads.query<{ found: Pet[] }>(statements.listByStatus, [cursor, limit + 1, status]));
      const found = row?.found ?? [];
      return { pets: found.slice(0, limit), more: found.length > limit };
    },
    async create({ name, categoryId, status }, idempotencyKey, now) {
      if (idempotencyKey !== undefined)
        return createOnce(prisma, { name, categoryId, status }, idempotencyKey, now);
      const values = [name, categoryId, status];
      const [row] = await writes.query<{ found: Pet }>(statements.create, values);
      return { pet: (row as { found: Pet }).found, isReplay: false };
    },
    async forgetExpired(now) {
      await prisma.idempotentCreate.deleteMany({
        where: { createdAt: { lte: new Date(now - REMEMBERED_MS) } },
      });
    },
    get: (id) => gets.load(id),
  };
}

/** Before each look whether the first create with a key has ended, in milliseconds. None holds a connection meanwhile. */
const WAITS_MS = [0, 20, 50, 100, 200, 400];
/** SQLSTATE, PostgreSQL's appendix A */
const UNIQUE_VIOLATION = '23505';

/**
 * Creates, or repeats the answer of the create that had the key before. The database alone decides who is first: the
 * key's row and the pet are one statement, which runs for one at a time.
 */
async function createOnce(
  prisma: PrismaClient,
  newPet: NewPet,
  idempotencyKey: IdempotencyKey,
  now: number,
): Promise<Creation> {
  const { apiKeyId, key, call, bodyHash } = idempotencyKey;
  for (const wait of WAITS_MS) {
    if (wait > 0) await delay(wait);
    const inserted = await insertOnce(prisma, newPet, idempotencyKey, now);
    if (inserted === 'in use') continue;
    if (inserted !== 'taken') return { pet: inserted, isReplay: false };
    const where = { apiKeyId_key_call: { apiKeyId, key, call } };
    const stored = await prisma.idempotentCreate.findUnique({ where });
    if (stored === null) continue;
    if (stored.createdAt.getTime() <= now - REMEMBERED_MS) {
      await prisma.idempotentCreate.deleteMany({
        where: { apiKeyId, key, call, createdAt: stored.createdAt },
      });
      continue;
    }
    if (Buffer.from(stored.bodyHash).equals(bodyHash))
      return { pet: petSchema.parse(stored.response), isReplay: true };
    throw new ApiError(
      'idempotency_key_reused',
      'This Idempotency-Key was used with another body: choose a new one.',
    );
  }
  throw new ApiError(
    'idempotency_key_in_use',
    'The first request with this Idempotency-Key still runs. Try again.',
  );
}

/**
 * `in use` while another create with the key runs, here or on another node: it holds the advisory lock until its
 * statement ends. `taken` when one has succeeded.
 */
async function insertOnce(
  prisma: PrismaClient,
  { name, categoryId, status }: NewPet,
  { apiKeyId, key, call, bodyHash }: IdempotencyKey,
  now: number,
): Promise<Pet | 'in use' | 'taken'> {
  try {
    const [row] = await prisma.$queryRaw<{ response: unknown }[]>`
      WITH turn AS MATERIALIZED (
        SELECT pg_try_advisory_xact_lock(hashtextextended(${`${apiKeyId} ${call} ${key}`}, 0)) AS is_ours
      ), created AS (
        INSERT INTO pets (name, category_id, status)
        SELECT ${name}, ${BigInt(categoryId)}, ${status}::pet_status FROM turn WHERE is_ours
        RETURNING json_build_object('id', id, 'name', name, 'categoryId', category_id, 'status', status) AS response
      )
      INSERT INTO idempotent_creates (api_key_id, key, call, body_hash, response, created_at)
      SELECT ${apiKeyId}::uuid, ${key}, ${call}, ${bodyHash}, response, ${new Date(now)} FROM created
      RETURNING response`;
    return row === undefined ? 'in use' : petSchema.parse(row.response);
  } catch (error) {
    if (readSqlState(error) === UNIQUE_VIOLATION) return 'taken';
    throw error;
  }
}
