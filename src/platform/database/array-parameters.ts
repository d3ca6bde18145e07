import type { InSchema } from './schema-name.js';

/** These stand for PostgreSQL's own types whatever else has the name. */
const KEYWORD_TYPES = new Set(['bigint', 'integer', 'smallint', 'boolean', 'decimal']);

/** One of PostgreSQL's own types */
export const typeSql = (type: string) => (KEYWORD_TYPES.has(type) ? type : `pg_catalog.${type}`);

/** A table of rows from one array per column. */
export function unnest(columns: Readonly<Record<string, string>>, inSchema: InSchema): string {
  const arrays = Object.values(columns).map(
    (type, index) => `pg_catalog.unnest(${arraySql(`$${index + 1}`, type, inSchema)})`,
  );
  return `ROWS FROM (${arrays.join(', ')}) WITH ORDINALITY AS given (${Object.keys(columns).join(', ')}, row_position)`;
}

/**
 * A parameter that is an array. Lists in it are given as text, because lists of different lengths do not make an array of
 * PostgreSQL's. Enums are given as text, too: PostgreSQL keeps the type of a parameter for as long as the statement is
 * prepared, and an enum may be restored as another type of the same name.
 */
export function arraySql(parameter: string, type: string, inSchema: InSchema): string {
  if (type.endsWith('[]')) return `${parameter}::pg_catalog.text[]`;
  const isEnum = type.includes('_');
  return isEnum ? `${parameter}::pg_catalog.text[]::${inSchema(type)}[]` : `${parameter}::${typeSql(type)}[]`;
}

/**
 * The last parameter is true if no value is null. With array_nulls off, PostgreSQL would take a null in an array for the text
 * NULL: then no row is inserted.
 */
export const readsNullsSql = (columns: object) =>
  `($${Object.keys(columns).length + 1} OR pg_catalog.current_setting('array_nulls') = 'on')`;

/** Those for no rows. */
export const emptyParameters = (columns: object) => [...Object.keys(columns).map(() => '{}'), true];

/** An array for each column, and whether there is no null in them. */
export function toParameters(rows: readonly (readonly unknown[])[]): unknown[] {
  const columns = (rows[0] ?? []).map((_, column) => rows.map((row) => row[column]));
  return [...columns, !rows.some((row) => row.includes(null))];
}
