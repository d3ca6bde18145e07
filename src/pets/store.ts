import DataLoader from 'dataloader';
import type { Database } from '../database/client.js';
import { Prisma } from '../database/generated/client.js';
import type { Statement } from '../database/pipelined-connection.js';
import { createOnce, type IdempotencyKey } from '../idempotency.js';
import { type Page, toPage } from '../pagination.js';
import type { NewPet, Pet, PetsPage } from './schema.js';

/** All queries on pets. Every method may fail with a database error: see isDatabaseOutage. */
export interface PetStore {
  /** The page after `cursor`, by ascending id. */
  list(page: PetsPage): Promise<Page<Pet>>;
  /** @throws ApiError idempotency_key_reused, idempotency_key_in_use */
  create(newPet: NewPet, idempotencyKey?: IdempotencyKey): Promise<Pet>;
  get(id: number): Promise<Pet | undefined>;
}

/**
 * Pets are read by column, as one JSON value. Handling each field by itself would take PostgreSQL and this process
 * longer than the rest of a page. A constraint keeps the integers within what a JavaScript number holds exactly.
 */
const COLUMNS = 'json_build_array(array_agg(id), array_agg(name), array_agg(category_id), array_agg(status))';
type Columns = [
  ids: Pet['id'][] | null,
  names: Pet['name'][],
  categoryIds: Pet['categoryId'][],
  statuses: Pet['status'][],
];

function toPets([ids, names, categoryIds, statuses]: Columns): Pet[] {
  if (ids === null) return [];
  return ids.map((id, index) => ({
    id,
    name: names[index] as Pet['name'],
    categoryId: categoryIds[index] as Pet['categoryId'],
    status: statuses[index] as Pet['status'],
  }));
}

/** One page for each index of three arrays: cursors, row counts and statuses. */
const pagesSql = (condition: string, order: string) => `
  SELECT (
    SELECT ${COLUMNS}
    FROM (SELECT * FROM pets WHERE ${condition} ORDER BY ${order} LIMIT wanted.row_count) AS page
  ) AS columns
  FROM unnest($1::bigint[], $2::int[], $3::pet_status[])
    WITH ORDINALITY AS wanted (cursor, row_count, pet_status, position)
  ORDER BY position`;

/**
 * The most pages and pets that one statement reads. Requests of one event-loop tick share a statement, because a round
 * trip costs more than the query itself.
 */
const MAX_PAGES_PER_STATEMENT = 8;
const MAX_GETS_PER_STATEMENT = 100;

/** Named, so that PostgreSQL parses and plans them once per connection. */
const statements = {
  list: { name: 'pets-list', text: pagesSql('id > wanted.cursor', 'id') },
  /**
   * The condition is phrased so that only the index on (status, id) can answer it. For `status = … AND id > …`
   * PostgreSQL assumes that each status is spread evenly over the ids, and scans all ids where it is not.
   */
  listByStatus: {
    name: 'pets-list-by-status',
    text: pagesSql(
      '(status, id) > (wanted.pet_status, wanted.cursor) AND status <= wanted.pet_status',
      'status, id',
    ),
  },
  get: { name: 'pets-get', text: `SELECT ${COLUMNS} AS columns FROM pets WHERE id = ANY ($1)` },
  create: {
    name: 'pets-create',
    text: 'INSERT INTO pets (name, category_id, status) VALUES ($1, $2, $3) RETURNING id',
  },
};

export function createPetStore({ prisma, reads, writes }: Database): PetStore {
  const createPageLoader = (statement: Statement) =>
    new DataLoader<PetsPage, Pet[]>(
      async (pages) => {
        const rows = await reads.query<{ columns: Columns }>(statement, [
          pages.map(({ cursor = 0 }) => cursor),
          pages.map(({ limit }) => limit + 1),
          pages.map(({ status = null }) => status),
        ]);
        return rows.map(({ columns }) => toPets(columns));
      },
      { cache: false, maxBatchSize: MAX_PAGES_PER_STATEMENT, batchScheduleFn: setImmediate },
    );
  const allPages = createPageLoader(statements.list);
  const statusPages = createPageLoader(statements.listByStatus);
  const gets = new DataLoader<number, Pet | undefined>(
    async (ids) => {
      const [row] = await reads.query<{ columns: Columns }>(statements.get, [ids]);
      const found = new Map(row && toPets(row.columns).map((pet) => [pet.id, pet]));
      return ids.map((id) => found.get(id));
    },
    { cache: false, maxBatchSize: MAX_GETS_PER_STATEMENT, batchScheduleFn: setImmediate },
  );
  return {
    async list(page) {
      const loader = page.status === undefined ? allPages : statusPages;
      return toPage(await loader.load(page), page.limit);
    },
    async create({ name, categoryId, status }, idempotencyKey) {
      if (idempotencyKey === undefined) {
        const values = [name, categoryId, status];
        const [row] = await writes.query<{ id: string }>(statements.create, values);
        return { id: Number(row?.id), name, categoryId, status };
      }
      const insert = {
        into: 'pets (name, category_id, status)',
        values: Prisma.sql`${name}, ${BigInt(categoryId)}, ${status}::pet_status`,
        returning: `json_build_object('id', id, 'name', name, 'categoryId', category_id, 'status', status)`,
      };
      return createOnce<Pet>(prisma, insert, idempotencyKey);
    },
    get: (id) => gets.load(id),
  };
}
