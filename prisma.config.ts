import { defineConfig } from 'prisma/config';

// `generate` and `studio` never run the schema engine, but download it if they cannot find it, which fails on closed
// networks. Naming any existing file satisfies them. Migrations do not use this command line.
process.env.PRISMA_SCHEMA_ENGINE_BINARY ??= process.execPath;

export default defineConfig({
  schema: 'prisma/schema.prisma',
  migrations: { path: 'prisma/migrations' },
  ...(process.env.DATABASE_URL ? { datasource: { url: process.env.DATABASE_URL } } : {}),
});
