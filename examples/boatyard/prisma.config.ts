import { defineConfig } from 'prisma/config';

// `prisma generate` runs no schema engine, but downloads one where it finds none. Any file is one to it.
if (process.argv.includes('generate')) process.env.PRISMA_SCHEMA_ENGINE_BINARY ??= process.execPath;
export default defineConfig({ schema: 'prisma', datasource: { url: process.env.DATABASE_URL ?? '' } });
