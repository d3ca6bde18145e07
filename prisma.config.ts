import { defineConfig } from 'prisma/config';

/**
 * These commands never run Prisma's schema engine, but download it if they cannot find it, which fails on closed networks.
 * Naming any existing file satisfies them. Other commands need the engine: Prisma takes PRISMA_SCHEMA_ENGINE_BINARY, or
 * downloads it once.
 */
const WITHOUT_ENGINE = ['generate', 'validate', 'format', 'studio'];
const [command = ''] = process.argv.slice(2);
if (WITHOUT_ENGINE.includes(command)) process.env.PRISMA_SCHEMA_ENGINE_BINARY ??= process.execPath;

export default defineConfig({
  schema: 'prisma',
  migrations: { path: 'prisma/migrations' },
  ...(process.env.DATABASE_URL ? { datasource: { url: process.env.DATABASE_URL } } : {}),
});
