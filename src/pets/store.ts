import { createBatchLoader } from '../platform/batch-loader.js';
import { arraySql } from '../platform/database/array-parameters.js';
import type { Database } from '../platform/database/client.js';
import { READ_CONNECTIONS } from '../platform/database/connections.js';
import { createInsert, type Insert } from '../platform/database/inserts.js';
import type { InSchema } from '../platform/database/schema-name.js';
import type { Statement } from '../platform/database/statement-pool.js';
import { type JsonColumns, table } from '../platform/database/table.js';
import { OPERATION_TIMEOUT_MS } from '../platform/timing/timeouts.js';
import type { NewPet, Pet, PetsPage } from './schema.js';

/** All queries on pets. Every method may fail with a database error: see isDatabaseOutage. */
export interface PetStore {
  /** The page after `cursor`, by ascending id, and the pet that follows it, if there is one. */
  list(page: PetsPage): Promise<Pet[]>;
  readonly create: Insert<NewPet, Pet>;
  get(id: number): Promise<Pet | undefined>;
}

const pets = table<Pet, NewPet>('pets', {
  id: 'bigint',
  name: 'text',
  categoryId: 'bigint',
  status: 'pet_status',
});

/** The most pages and pets that one statement reads. Requests share one because a round trip costs more than the query. */
const MAX_PAGES_PER_STATEMENT = 32;
const MAX_GETS_PER_STATEMENT = 100;
/** A read that waited longer has been answered with a 503. */
const READS = { maxConcurrent: READ_CONNECTIONS, maxWaitMs: OPERATION_TIMEOUT_MS } as const;

/** Named, so that PostgreSQL parses and plans them once per connection. */
function createStatements(inSchema: InSchema) {
  const table = inSchema('pets');
  /** One page for each index of the arrays: cursors and row counts, and statuses if `columns` has them. */
  const pagesSql = (arrays: string, columns: string, condition: string, order: string) => `
    SELECT (
      SELECT ${pets.jsonColumns}
      FROM (SELECT * FROM ${table} WHERE ${condition} ORDER BY ${order} LIMIT wanted.row_count) AS page
    ) AS columns
    FROM unnest($1::bigint[], $2::integer[]${arrays}) WITH ORDINALITY AS wanted (cursor, row_count, ${columns}position)
    ORDER BY position`;
  return {
    list: {
      name: 'pets-list',
      text: pagesSql('', '', 'id > wanted.cursor', 'id'),
      emptyValues: ['{}', '{}'],
    },
    /**
     * The condition is phrased so that only the index on (status, id) can answer it. For `status = … AND id > …`
     * PostgreSQL assumes that each status is spread evenly over the ids, and scans all ids where it is not.
     */
    listByStatus: {
      name: 'pets-list-by-status',
      text: pagesSql(
        `, ${arraySql('$3', 'pet_status', inSchema)}`,
        'pet_status, ',
        '(status, id) > (wanted.pet_status, wanted.cursor) AND status <= wanted.pet_status',
        'status, id',
      ),
      emptyValues: ['{}', '{}', '{}'],
    },
    get: {
      name: 'pets-get',
      text: `SELECT ${pets.json} AS pet FROM ${table} WHERE id = $1`,
      emptyValues: [0],
    },
    getAll: {
      name: 'pets-get-all',
      text: `SELECT ${pets.jsonColumns} AS columns FROM ${table} WHERE id = ANY ($1)`,
      emptyValues: ['{}'],
    },
  };
}

export function createPetStore(database: Database): PetStore {
  const { reads, inSchema } = database;
  const statements = createStatements(inSchema);
  reads.register(...Object.values(statements));
  const createPageLoader = (statement: Statement) =>
    createBatchLoader<PetsPage, Pet[]>(
      async (pages) => {
        const statuses = pages.flatMap(({ status }) => status ?? []);
        const rows = await reads.query<{ columns: JsonColumns }>(statement, [
          toArray(pages.map(({ cursor = 0 }) => cursor)),
          toArray(pages.map(({ limit }) => limit + 1)),
          ...(statuses.length > 0 ? [toArray(statuses)] : []),
        ]);
        return rows.map(({ columns }) => pets.toRows(columns));
      },
      { ...READS, maxSize: MAX_PAGES_PER_STATEMENT },
    );
  const allPages = createPageLoader(statements.list);
  const statusPages = createPageLoader(statements.listByStatus);
  const gets = createBatchLoader<number, Pet | undefined>(
    async (ids) => {
      if (ids.length === 1) {
        const [row] = await reads.query<{ pet: Pet }>(statements.get, ids);
        return [row?.pet];
      }
      const [row] = await reads.query<{ columns: JsonColumns }>(statements.getAll, [toArray(ids)]);
      const found = new Map(row && pets.toRows(row.columns).map((pet) => [pet.id, pet]));
      return ids.map((id) => found.get(id));
    },
    { ...READS, maxSize: MAX_GETS_PER_STATEMENT },
  );
  return {
    list: (page) => (page.status === undefined ? allPages : statusPages).load(page),
    create: createInsert(database, pets),
    get: (id) => gets.load(id),
  };
}

/** An array as PostgreSQL reads it. pg would quote and escape each number and name by itself. */
function toArray(values: readonly (number | string)[]): string {
  return `{${values.join()}}`;
}
