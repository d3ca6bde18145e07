import { createBatchLoader } from '@animal-store/batch-loader';
import type { Database } from '../connections/client.js';
import { READS_PER_TABLE } from '../connections/connections.js';
import type { CheckedStatement } from '../connections/statement-pool.js';
import { BATCH_CHANNEL } from '../timing/batch-channel.js';
import { OPERATION_TIMEOUT_MS } from '../timing/timeouts.js';
import { type JsonColumns, type Table, typeSql } from './table.js';

/** The most pages and rows that one statement reads. Requests share one because a round trip costs more than the query. */
const MAX_PAGES_PER_STATEMENT = 32;
const MAX_ROWS_PER_STATEMENT = 100;
/**
 * Fewer reads than this wait while a statement is under way, because another one would cost this process 60 µs. With more,
 * two statements share the work, so this process handles one result while PostgreSQL runs the other. Pages take PostgreSQL
 * longer, so their threshold is lower.
 */
const MIN_PAGES_PER_STATEMENT = 4;
const MIN_ROWS_PER_STATEMENT = 8;
/** A read that waited longer has been answered with a 503. */
const READS = {
  maxConcurrent: READS_PER_TABLE,
  maxWaitMs: OPERATION_TIMEOUT_MS,
  channelName: BATCH_CHANNEL,
} as const;
/** Each combination of filters is a statement of its own, and needs an index. Up to PostgreSQL 16, three could not use theirs. */
const MAX_FILTERS = 2;
const RESERVED = ['limit', 'cursor', 'order'] as const;
/**
 * The cursor of the first page, also in place of one that is no id, such as the 0 that openapi-react-query sends: ids are
 * positive, and a JavaScript number holds all of them exactly.
 */
const START = { oldest: 0, newest: 2 ** 53 } as const;

/** Which rows of a list come first: by ascending id, or by descending. */
export const PAGE_ORDERS = ['oldest', 'newest'] as const;
type PageOrder = (typeof PAGE_ORDERS)[number];

/** A page of a list: up to `limit` rows beyond `cursor` in its order, whose fields have the values to filter by. */
type PageOf<Row, Filter extends keyof Row> = {
  readonly limit: number;
  readonly cursor?: number | undefined;
  /** Default: oldest */
  readonly order?: PageOrder | undefined;
} & { readonly [Field in Filter]?: Exclude<Row[Field], null> | undefined };

export interface Reads<Row, Filter extends keyof Row> {
  /** The page in its order, and the row that follows it, if there is one. */
  list(page: PageOf<Row, Filter>): Promise<Row[]>;
  get(id: number): Promise<Row | undefined>;
}

export interface ReadOptions<Filter> {
  /** The fields to filter pages by. Each combination needs an index: `@@index([status, id])` for `['status']`. */
  readonly filters?: readonly Filter[];
  /** SQL: a condition on the columns of every row that is read, such as `deleted_at IS NULL`. Default: none */
  readonly where?: string;
}

/**
 * Reads the rows of a table by page and by id. PostgreSQL parses and plans the statements once per connection, and
 * simultaneous requests share them. May fail with a database error: see isDatabaseOutage.
 */
export function createReads<Row, NewRow, Filter extends keyof Row & string = never>(
  { reads, inSchema }: Pick<Database, 'reads' | 'inSchema'>,
  table: Table<Row, NewRow>,
  { filters = [], where = 'true' }: ReadOptions<Filter> = {},
): Reads<Row, Filter> {
  if (filters.length > MAX_FILTERS)
    throw new TypeError(`${table.name}: pages can be filtered by at most ${MAX_FILTERS} fields at once`);
  if (filters.some((field) => (RESERVED as readonly string[]).includes(field)))
    throw new TypeError(`${table.name}: ${RESERVED.join(', ')} are members of every page, and no filters`);
  const members = new Set<string>([...RESERVED, ...filters]);
  const name = inSchema(table.name);
  /**
   * One page for each index of the arrays: cursors, row counts and the values of the filters.
   *
   * The condition is phrased so that only the index on the filters and `id` can answer it. For `status = … AND id > …`
   * PostgreSQL assumes that each status is spread evenly over the ids, and scans all ids where it is not. So the last filter
   * and `id` are compared as one row. A filter before it is not part of that row: up to PostgreSQL 17, the scan would not end
   * with the rows that match. It is no plain `=` either: the index on the last filter and `id` would do for the order then.
   */
  const createListStatement = (by: readonly Filter[], order: PageOrder): CheckedStatement => {
    const columns = by.map((field) => table.toColumn(field));
    const wanted = by.map((_, index) => `filter_${index}`);
    // Parameters are text at first: PostgreSQL keeps the type of a parameter, and a restore may replace an enum by another
    // of the same name.
    const arrays = by.map(
      (field, index) => `, $${index + 3}::text[]::${typeSql(table.types[field], inSchema)}[]`,
    );
    const [beyond, within, direction] = order === 'oldest' ? ['>', '<=', ''] : ['<', '>=', ' DESC'];
    const sorted = [...columns, 'id'].map((column) => column + direction).join(', ');
    const conditions = columns.map((column, index) => {
      const value = `wanted.${wanted[index]}`;
      return index < columns.length - 1
        ? `${column} = ANY (ARRAY[${value}])`
        : `(${column}, id) ${beyond} (${value}, wanted.cursor) AND ${column} ${within} ${value}`;
    });
    if (by.length === 0) conditions.push(`id ${beyond} wanted.cursor`);
    const condition = [...conditions, where].join(' AND ');
    return {
      table: table.name,
      name: [
        ...[table.name, 'list', ...(by.length === 0 ? [] : ['by', ...by])],
        ...(order === 'oldest' ? [] : [order]),
      ].join('-'),
      text: `
        SELECT (
          SELECT ${table.jsonColumns}
          FROM (SELECT * FROM ${name} WHERE ${condition} ORDER BY ${sorted} LIMIT wanted.row_count) AS page
        ) AS columns
        FROM unnest($1::bigint[], $2::integer[]${arrays.join('')})
          WITH ORDINALITY AS wanted (${['cursor', 'row_count', ...wanted, 'position'].join(', ')})
        ORDER BY position`,
      emptyValues: ['{}', '{}', ...by.map(() => '{}')],
    };
  };
  const getStatement = {
    table: table.name,
    name: `${table.name}-get`,
    text: `SELECT ${table.json} AS row FROM ${name} WHERE id = $1 AND ${where}`,
    emptyValues: [0],
  };
  const getAllStatement = {
    table: table.name,
    name: `${table.name}-get-all`,
    text: `SELECT ${table.jsonColumns} AS columns FROM ${name} WHERE id = ANY ($1) AND ${where}`,
    emptyValues: ['{}'],
  };
  reads.register(getStatement, getAllStatement);
  const createPageLoader = (by: readonly Filter[], order: PageOrder) => {
    const statement = createListStatement(by, order);
    // Readiness runs the plain list. The others it only plans, because they are many.
    reads.register({ ...statement, isOnlyPlanned: order === 'newest' || by.length > 0 });
    return createBatchLoader<PageOf<Row, Filter>, Row[]>(
      async (pages) => {
        const rows = await reads.query<{ columns: JsonColumns }>(statement, [
          toArray(pages.map(({ cursor = 0 }) => (cursor > 0 ? cursor : START[order]))),
          toArray(pages.map(({ limit }) => limit + 1)),
          ...by.map((field) => pages.map((page) => page[field])),
        ]);
        return rows.map(({ columns }) => table.toRows(columns));
      },
      { ...READS, splitFrom: MIN_PAGES_PER_STATEMENT, maxSize: MAX_PAGES_PER_STATEMENT },
    );
  };
  /** By the filters of a page: bit n is whether it has the nth. */
  const pageLoaders = Array.from({ length: 2 ** filters.length }, (_, bits) => {
    const by = filters.filter((_, index) => bits & (1 << index));
    return { oldest: createPageLoader(by, 'oldest'), newest: createPageLoader(by, 'newest') };
  });
  const gets = createBatchLoader<number, Row | undefined>(
    async (ids) => {
      if (ids.length === 1) {
        const [found] = await reads.query<{ row: Row & object }>(getStatement, ids);
        return [found?.row];
      }
      const [found] = await reads.query<{ columns: JsonColumns }>(getAllStatement, [toArray(ids)]);
      const rows = new Map(
        found && table.toRows(found.columns).map((each) => [(each as { id?: unknown }).id, each]),
      );
      return ids.map((id) => rows.get(id));
    },
    { ...READS, splitFrom: MIN_ROWS_PER_STATEMENT, maxSize: MAX_ROWS_PER_STATEMENT },
  );
  return {
    list(page) {
      // A list that ignores one would show the rows of other parents, or owners.
      for (const member in page)
        if (!members.has(member))
          throw new TypeError(
            `${table.name} cannot be listed by ${member}: name it in the filters of createReads`,
          );
      let bits = 0;
      for (const [index, field] of filters.entries()) if (page[field] !== undefined) bits |= 1 << index;
      return (pageLoaders[bits] as (typeof pageLoaders)[number])[page.order ?? 'oldest'].load(page);
    },
    get: (id) => gets.load(id),
  };
}

/** An array as PostgreSQL reads it. pg would quote and escape each number. */
const toArray = (numbers: readonly number[]) => `{${numbers.join()}}`;
