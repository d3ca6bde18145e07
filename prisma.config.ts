import { defineConfig } from 'prisma/config';

// `generate` and `studio` never run Prisma's schema engine, but download it if they cannot find it, which fails on closed
// networks. Naming any existing file satisfies them. The commands that do run it would print nothing.
const { PRISMA_SCHEMA_ENGINE_BINARY } = process.env;
process.env.PRISMA_SCHEMA_ENGINE_BINARY ??= process.execPath;
const [command = ''] = process.argv.slice(2);
if (PRISMA_SCHEMA_ENGINE_BINARY === undefined && ['migrate', 'db'].includes(command)) {
  process.stderr.write(
    `"prisma ${command}" needs Prisma's schema engine, which is not installed: apply migrations with npm run migrate, ` +
      'or name the file of an engine in PRISMA_SCHEMA_ENGINE_BINARY.\n',
  );
  process.exit(1);
}

export default defineConfig({
  schema: 'prisma/schema.prisma',
  migrations: { path: 'prisma/migrations' },
  ...(process.env.DATABASE_URL ? { datasource: { url: process.env.DATABASE_URL } } : {}),
});
