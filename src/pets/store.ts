import DataLoader from 'dataloader';
import type { Database } from '../database/client.js';
import type { Statement } from '../database/pipeline.js';
import { type Creation, createOnce } from './create-once.js';
import { type IdempotencyKey, REMEMBERED_MS } from './idempotency.js';
import type { NewPet, Pet, PetsPage } from './schema.js';

/** The only place with queries on pets, with createOnce beside it. Every method fails as the database does; see isDatabaseOutage. */
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
