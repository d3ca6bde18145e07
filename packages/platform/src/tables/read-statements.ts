import type { InSchema } from '../connections/schema-name.js';
import type { CheckedStatement } from '../connections/statement-pool.js';
import { type Table, typeSql } from './table.js';

/** Which rows of a list come first: by ascending id, or by descending. */
export const PAGE_ORDERS = ['oldest', 'newest'] as const;
export type PageOrder = (typeof PAGE_ORDERS)[number];

/** The rows that statements read. */
export interface ReadRows<Row, NewRow> {
  readonly inSchema: InSchema;
  readonly table: Table<Row, NewRow>;
  /** SQL: a condition on the columns of every row */
  readonly where: string;
}

/**
 * One page for each index of the arrays: cursors, row counts and the values of the filters. For `boats` that are filtered by
 * `harbour` and `status`:
 *
 *     SELECT (
 *       SELECT json_build_array(array_agg("id"), array_agg("harbour"), array_agg("status"))
 *       FROM (
 *         SELECT * FROM "public"."boats"
 *         WHERE "harbour" = ANY (ARRAY[wanted.filter_0])
 *           AND ("status", id) > (wanted.filter_1, wanted.cursor) AND "status" <= wanted.filter_1 AND true
 *         ORDER BY "harbour", "status", id LIMIT wanted.row_count
 *       ) AS page
 *     ) AS columns
 *     FROM unnest($1::bigint[], $2::integer[], $3::text[]::text[], $4::text[]::"public"."boat_status"[])
 *       WITH ORDINALITY AS wanted (cursor, row_count, filter_0, filter_1, position)
 *     ORDER BY position
 *
 * The condition is phrased so that only the index on the filters and `id` can answer it. For `status = … AND id > …`
 * PostgreSQL assumes that each status is spread evenly over the ids, and scans all ids where it is not. So the last filter
 * and `id` are compared as one row. A filter before it is not part of that row: up to PostgreSQL 17, the scan would not end
 * with the rows that match. It is no plain `=` either: the index on the last filter and `id` would do for the order then.
 *
 * Values of filters are text at first. PostgreSQL keeps the type of a parameter, and a restore may replace an enum by another
 * of the same name.
 *
 * @param before a field whose values have to be below a bound, which is a further array. No index answers it: PostgreSQL reads
 * the rows of the page in their order, and passes over the others.
 */
export function createListStatement<Row, NewRow, Filter extends keyof Row & string>(
  { inSchema, table, where }: ReadRows<Row, NewRow>,
  by: readonly Filter[],
  order: PageOrder,
  before?: keyof Row & string,
): CheckedStatement {
  const [beyond, within, direction] = order === 'oldest' ? ['>', '<=', ''] : ['<', '>=', ' DESC'];
  const columns = by.map((field) => table.toColumn(field));
  const filters = by.map((_, index) => `filter_${index}`);
  const compared = [...by, ...(before === undefined ? [] : [before])];
  const types = compared.map((field) => typeSql(table.types[field], inSchema));
  const arrays = types.map((type, index) => `$${index + 3}::text[]::${type}[]`);
  const conditions = columns.map((column, index) => {
    const value = `wanted.${filters[index]}`;
    return index < columns.length - 1
      ? `${column} = ANY (ARRAY[${value}])`
      : `(${column}, id) ${beyond} (${value}, wanted.cursor) AND ${column} ${within} ${value}`;
  });
  if (by.length === 0) conditions.push(`id ${beyond} wanted.cursor`);
  if (before !== undefined) conditions.push(`${table.toColumn(before)} < wanted.bound`);
  const sorted = [...columns, 'id'].map((column) => column + direction);
  const name = [
    ...[table.name, 'list', ...(by.length === 0 ? [] : ['by', ...by])],
    ...(before === undefined ? [] : ['before', before]),
    ...(order === 'oldest' ? [] : [order]),
  ];
  const wanted = [...filters, ...(before === undefined ? [] : ['bound'])];
  return {
    table: table.name,
    name: name.join('-'),
    text: `
      SELECT (
        SELECT ${table.jsonColumns}
        FROM (
          SELECT * FROM ${inSchema(table.name)}
          WHERE ${[...conditions, where].join(' AND ')}
          ORDER BY ${sorted.join(', ')} LIMIT wanted.row_count
        ) AS page
      ) AS columns
      FROM unnest(${['$1::bigint[]', '$2::integer[]', ...arrays].join(', ')})
        WITH ORDINALITY AS wanted (${['cursor', 'row_count', ...wanted, 'position'].join(', ')})
      ORDER BY position`,
    emptyValues: ['{}', '{}', ...compared.map(() => '{}')],
  };
}

/** Reads one row by its id, or several as columns, in no certain order. */
export function createGetStatements<Row, NewRow>({ inSchema, table, where }: ReadRows<Row, NewRow>) {
  const from = (condition: string) => `FROM ${inSchema(table.name)} WHERE ${condition} AND ${where}`;
  return {
    one: {
      table: table.name,
      name: `${table.name}-get`,
      text: `SELECT ${table.json} AS row ${from('id = $1')}`,
      emptyValues: [0],
    },
    several: {
      table: table.name,
      name: `${table.name}-get-all`,
      text: `SELECT ${table.jsonColumns} AS columns ${from('id = ANY ($1)')}`,
      emptyValues: ['{}'],
    },
  };
}
