const DEFAULT_SCHEMA = 'public';

/** The schema that holds the tables: that of the URL's `?schema=`, as Prisma's tools read it, else `public`. */
export function schemaOf(url: string): string {
  return new URL(url).searchParams.get('schema') || DEFAULT_SCHEMA;
}
