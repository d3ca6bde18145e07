import { defineConfig } from 'prisma/config';

// `generate` and `studio` look the schema engine up without ever running it, and a closed network refuses its
// download; naming a file that exists ends the search. Migrations do not go through this command line.
process.env.PRISMA_SCHEMA_ENGINE_BINARY ??= process.execPath;

export default defineConfig({
  schema: 'prisma/schema.prisma',
  migrations: { path: 'prisma/migrations' },
  ...(process.env.DATABASE_URL ? { datasource: { url: process.env.DATABASE_URL } } : {}),
});
