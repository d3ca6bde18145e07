import { setTimeout as delay } from 'node:timers/promises';
import DataLoader from 'dataloader';
import type { Database } from '../database/client.js';
import { readSqlState } from '../database/outage.js';
import type { Statement } from '../database/pipeline.js';
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
 * Pets come by column, as one JSON value: neither PostgreSQL nor this process then handles each field by itself, which
 * both take longer for than for all the rest of a page. The database holds only integers that a JavaScript number
 * carries exactly, by constraint.
 */
const byColumn =
  'json_build_array(array_agg(id), array_agg(name), array_agg(category_id), array_agg(status))';
type Columns = [
  ids: Pet['id'][] | null,
  names: Pet['name'][],
  categoryIds: Pet['categoryId'][],
  statuses: Pet['status'][],
];

function toPets([ids, names, categoryIds, statuses]: Columns): Pet[] {
  if (ids === null) return [];
  return ids.map((id, at) => ({
    id,
    name: names[at] as Pet['name'],
    categoryId: categoryIds[at] as Pet['categoryId'],
    status: statuses[at] as Pet['status'],
  }));
}

/** A page for each place of three arrays: cursors, the most pets, and statuses */
const pages = (condition: string, order: string) => `
  SELECT (
    SELECT ${byColumn}
    FROM (SELECT * FROM pets WHERE ${condition} ORDER BY ${order} LIMIT asked.most) AS page
  ) AS columns
  FROM unnest($1::bigint[], $2::int[], $3::pet_status[])
    WITH ORDINALITY AS asked (cursor, most, pet_status, place)
  ORDER BY place`;

/**
 * The most pages and animals looked up by one statement. Those asked for in one turn of the event loop are looked up
 * together: a round trip for each would take more than the look-up itself.
 */
const PAGES_MAX = 8;
const GETS_MAX = 100;

/** Named, so that PostgreSQL parses and plans them once per connection. */
const statements = {
  list: { name: 'pets-list', text: pages('id > asked.cursor', 'id') },
  /**
   * The pets of the status, said so that only the index on both answers it: asked for `status = … AND id > …`,
   * PostgreSQL takes the statuses to be spread evenly over the ids, and walks through all ids where they are not.
   */
  listByStatus: {
    name: 'pets-list-by-status',
    text: pages(
      '(status, id) > (asked.pet_status, asked.cursor) AND status <= asked.pet_status',
      'status, id',
    ),
  },
  get: { name: 'pets-get', text: `SELECT ${byColumn} AS columns FROM pets WHERE id = ANY ($1)` },
  create: {
    name: 'pets-create',
    text: 'INSERT INTO pets (name, category_id, status) VALUES ($1, $2, $3) RETURNING id',
  },
};

export function createPetStore({ prisma, reads, writes }: Database): PetStore {
  const loadPages = (statement: Statement) =>
    new DataLoader<PetsPage, Pet[]>(
      async (asked) => {
        const rows = await reads.query<{ columns: Columns }>(statement, [
          asked.map(({ cursor = 0 }) => cursor),
          asked.map(({ limit }) => limit + 1),
          asked.map(({ status = null }) => status),
        ]);
        return rows.map(({ columns }) => toPets(columns));
      },
      { cache: false, maxBatchSize: PAGES_MAX, batchScheduleFn: setImmediate },
    );
  const all = loadPages(statements.list);
  const ofStatus = loadPages(statements.listByStatus);
  const gets = new DataLoader<number, Pet | undefined>(
    async (ids) => {
      const [row] = await reads.query<{ columns: Columns }>(statements.get, [ids]);
      const found = new Map(row && toPets(row.columns).map((pet) => [pet.id, pet]));
      return ids.map((id) => found.get(id));
    },
    { cache: false, maxBatchSize: GETS_MAX, batchScheduleFn: setImmediate },
  );
  return {
    async list(page) {
      const found = await (page.status === undefined ? all : ofStatus).load(page);
      const more = found.length > page.limit;
      return { pets: more ? found.slice(0, page.limit) : found, more };
    },
    async create({ name, categoryId, status }, idempotencyKey, now) {
      if (idempotencyKey !== undefined)
        return createOnce(prisma, { name, categoryId, status }, idempotencyKey, now);
      const values = [name, categoryId, status];
      const [row] = await writes.query<{ id: string }>(statements.create, values);
      return { pet: { id: Number(row?.id), name, categoryId, status }, isReplay: false };
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
