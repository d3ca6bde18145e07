import pg from 'pg';

const DEFAULT_SCHEMA = 'public';

/** The schema that a database URL names in its parameter `schema`, as in Prisma's URLs; otherwise `public`. */
export function schemaOf(url: string): string {
  return readParameter(url, 'schema') || DEFAULT_SCHEMA;
}

/** A parameter of a database URL, which may lack what `URL` demands, such as a host. */
export function readParameter(url: string, name: string): string | null {
  const start = url.indexOf('?');
  return new URLSearchParams(start < 0 ? '' : url.slice(start)).get(name);
}

/** The name of a table, type or function with its schema, quoted, for use in SQL. */
export type InSchema = (name: string) => string;

/**
 * Lets statements name their schema. Behind a pooler, another client may have changed the `search_path` of the connection,
 * as pg_dump does; an unqualified name could then mean another table.
 */
export function createInSchema(schema: string): InSchema {
  return (name) => `${pg.escapeIdentifier(schema)}.${pg.escapeIdentifier(name)}`;
}

/**
 * The `search_path` for unqualified names, such as those in an operator's trigger; the same as in a migration. PostgreSQL
 * looks into pg_catalog first, and temporary tables come last. Written as PostgreSQL shows it, unless the schema is a
 * keyword.
 */
export function searchPathOf(schema: string): string {
  return `${/^[a-z_][a-z0-9_]*$/.test(schema) ? schema : pg.escapeIdentifier(schema)}, pg_temp`;
}
