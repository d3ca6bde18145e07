import { rm } from 'node:fs/promises';
import { createEmbeddedPostgres } from '@animal-store/embedded-postgres';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { applyMigrations } from '../../src/database/migrations.js';
import { makeFolder } from './folder.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** PostgreSQL of this run: databases are copied from TEMPLATE */
    postgresUrl: string;
  }
}

/** A database with all migrations and no rows. */
export const TEMPLATE = 'animal_store_template';

/** One PostgreSQL for all test files, the embedded one, in a folder that goes with the run. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const dataDir = await makeFolder();
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
