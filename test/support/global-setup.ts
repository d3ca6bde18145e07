import { execFileSync } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { createEmbeddedPostgres } from '@animal-store/embedded-postgres';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { applyMigrations } from '../../src/database/schema-engine.js';
import { createTemporaryFolder } from './temporary-folder.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** The PostgreSQL server of this run */
    postgresUrl: string;
  }
}

/** A database with all migrations and no rows; tests work on copies of it. */
export const TEMPLATE = 'animal_store_template';

/** Builds what is out of date, and starts one embedded PostgreSQL for all test files in a temporary folder. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  build();
  project.onTestsRerun(async () => build());
  const dataDir = await createTemporaryFolder();
  const postgres = await createEmbeddedPostgres({ dataDir, database: 'animal_store' });
  const client = new pg.Client(postgres.url);
  await client.connect();
  await client.query(`CREATE DATABASE ${TEMPLATE}`);
  await client.end();
  const template = new URL(postgres.url);
  template.pathname = `/${TEMPLATE}`;
  await applyMigrations(template.href);
  project.provide('postgresUrl', postgres.url);
  return async () => {
    await postgres.release();
    await rm(dataDir, { recursive: true, force: true });
  };
}

/** Tests import the generated Prisma client and start dist/main.js. */
function build(): void {
  execFileSync(process.execPath, ['scripts/build.js'], { stdio: 'inherit' });
}
