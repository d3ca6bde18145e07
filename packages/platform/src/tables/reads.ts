import { createBatchLoader } from '@animal-store/batch-loader';
import { BATCH_CHANNEL } from '../connections/batch-channel.js';
import type { Database } from '../connections/client.js';
import { READS_PER_TABLE } from '../connections/connections.js';
import { OPERATION_TIMEOUT_MS } from '../timing/timeouts.js';
import {
  createGetStatements,
  createListStatement,
  type PageOrder,
  type ReadRows,
} from './read-statements.js';
import type { JsonColumns, Table } from './table.js';

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

/**
 * A page of a list: up to `limit` rows beyond `cursor` in its order, whose fields have the values to filter by and are before
 * its bound.
 */
type PageOf<Row, Filter extends keyof Row, Bound extends string = never> = {
  readonly limit: number;
  readonly cursor?: number | undefined;
  /** Default: oldest */
  readonly order?: PageOrder | undefined;
} & { readonly [Field in Filter]?: Exclude<Row[Field], null> | undefined } & {
  readonly [Member in Bound]?: string | undefined;
};

export interface Reads<Row, Filter extends keyof Row, Bound extends string = never> {
  /** The page in its order, and the row that follows it, if there is one. */
  list(page: PageOf<Row, Filter, Bound>): Promise<Row[]>;
  get(id: number): Promise<Row | undefined>;
}

export interface ReadOptions<Row, Filter, Bound extends string = never> {
  /** The fields to filter pages by. Each combination needs an index: `@@index([status, id])` for `['status']`. */
  readonly filters?: readonly Filter[];
  /**
   * The member of pages that is an exclusive upper bound of a field. A page costs the rows that it passes over, too, so pages with
   * a bound share statements with each other alone.
   */
  readonly before?: { readonly member: Bound; readonly field: keyof Row & string };
  /** SQL: a condition on the columns of every row that is read, such as `deleted_at IS NULL`. Default: none */
  readonly where?: string;
}

/**
 * Reads the rows of a table by page and by id. PostgreSQL parses and plans the statements once per connection, and
 * simultaneous requests share them. May fail with a database error: see isDatabaseOutage.
 */
export function createReads<
  Row,
  NewRow,
  Filter extends keyof Row & string = never,
  Bound extends string = never,
>(
  { reads, inSchema }: Pick<Database, 'reads' | 'inSchema'>,
  table: Table<Row, NewRow>,
  { filters = [], where = 'true', before }: ReadOptions<Row, Filter, Bound> = {},
): Reads<Row, Filter, Bound> {
  checkFilters(table.name, filters);
  const members = new Set<string>([...RESERVED, ...filters, ...(before ? [before.member] : [])]);
  const source = { reads, inSchema, table, where };
  const rowLoader = createRowLoader(source);
  const pageLoaders = createPageLoaders(source, filters);
  const boundedLoaders = before === undefined ? [] : createPageLoaders(source, filters, before);
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
      const loaders =
        before === undefined || page[before.member] === undefined ? pageLoaders : boundedLoaders;
      return (loaders[bits] as (typeof loaders)[number])[page.order ?? 'oldest'].load(page);
    },
    get: (id) => rowLoader.load(id),
  };
}

function checkFilters(tableName: string, filters: readonly string[]): void {
  if (filters.length > MAX_FILTERS)
    throw new TypeError(`${tableName}: pages can be filtered by at most ${MAX_FILTERS} fields at once`);
  if (filters.some((field) => (RESERVED as readonly string[]).includes(field)))
    throw new TypeError(`${tableName}: ${RESERVED.join(', ')} are members of every page, and no filters`);
}

interface Source<Row, NewRow> extends ReadRows<Row, NewRow>, Pick<Database, 'reads'> {}

/** By the filters of a page: bit n of the index is whether it has the nth. */
function createPageLoaders<Row, NewRow, Filter extends keyof Row & string, Bound extends string>(
  source: Source<Row, NewRow>,
  filters: readonly Filter[],
  before?: ReadOptions<Row, Filter, Bound>['before'],
) {
  return Array.from({ length: 2 ** filters.length }, (_, bits) => {
    const by = filters.filter((_, index) => bits & (1 << index));
    return {
      oldest: createPageLoader(source, by, 'oldest', before),
      newest: createPageLoader(source, by, 'newest', before),
    };
  });
}

/** Loads pages that have the same filters and order, and all or none a bound. */
function createPageLoader<Row, NewRow, Filter extends keyof Row & string, Bound extends string>(
  source: Source<Row, NewRow>,
  by: readonly Filter[],
  order: PageOrder,
  before: ReadOptions<Row, Filter, Bound>['before'],
) {
  const { reads, table } = source;
  const statement = createListStatement(source, by, order, before?.field);
  // Readiness runs the plain list. The others it only plans, because they are many.
  const isPlain = order === 'oldest' && by.length === 0 && before === undefined;
  reads.register({ ...statement, isOnlyPlanned: !isPlain });
  return createBatchLoader<PageOf<Row, Filter, Bound>, Row[]>(
    async (pages) => {
      const rows = await reads.query<{ columns: JsonColumns }>(statement, [
        toArray(pages.map(({ cursor = 0 }) => (cursor > 0 ? cursor : START[order]))),
        toArray(pages.map(({ limit }) => limit + 1)),
        ...by.map((field) => pages.map((page) => page[field])),
        ...(before === undefined ? [] : [pages.map((page) => page[before.member])]),
      ]);
      return rows.map(({ columns }) => table.toRows(columns));
    },
    { ...READS, splitFrom: MIN_PAGES_PER_STATEMENT, maxSize: MAX_PAGES_PER_STATEMENT },
  );
}

/** Loads rows by their ids. A row alone takes a statement of its own, which is cheaper. */
function createRowLoader<Row, NewRow>({ reads, ...rows }: Source<Row, NewRow>) {
  const { one, several } = createGetStatements(rows);
  reads.register(one, several);
  return createBatchLoader<number, Row | undefined>(
    async (ids) => {
      if (ids.length === 1) {
        const [found] = await reads.query<{ row: Row & object }>(one, ids);
        return [found?.row];
      }
      const [found] = await reads.query<{ columns: JsonColumns }>(several, [toArray(ids)]);
      const byId = new Map(
        found && rows.table.toRows(found.columns).map((each) => [(each as { id?: unknown }).id, each]),
      );
      return ids.map((id) => byId.get(id));
    },
    { ...READS, splitFrom: MIN_ROWS_PER_STATEMENT, maxSize: MAX_ROWS_PER_STATEMENT },
  );
}

/** An array as PostgreSQL reads it. pg would quote and escape each number. */
const toArray = (numbers: readonly number[]) => `{${numbers.join()}}`;
