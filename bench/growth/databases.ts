import { rm } from 'node:fs/promises';
import { openEmbedded } from '@animal-store/embedded-postgres';
import pg from 'pg';
import { type Database, openDatabase } from '../../src/database/client.js';
import { applyMigrations } from '../../src/database/migrations.js';
import { createTemporaryFolder } from '../../test/support/temporary-folder.js';

/** Databases of several sizes side by side on one PostgreSQL, so that what is measured on them can take turns. */
export interface SizedDatabases {
  readonly databases: readonly { readonly size: number; readonly database: Database }[];
  close(): Promise<void>;
}

/** Makes an own PostgreSQL with one migrated database per size, each filled by `fill`. Says how long that took. */
export async function openSizes(
  sizes: readonly number[],
  fill: (client: pg.Client, size: number) => Promise<void>,
): Promise<SizedDatabases> {
  const dataDir = await createTemporaryFolder();
  const postgres = await openEmbedded({ dataDir, role: 'guest', log: () => {} });
  const databases: { size: number; database: Database }[] = [];
  const close = async () => {
    for (const { database } of databases) await database.close();
    await postgres.release();
    await rm(dataDir, { recursive: true, force: true });
  };
  try {
    for (const size of sizes) {
      const startedAt = performance.now();
      const url = await createDatabase(postgres.url, `size_${size}`);
      await applyMigrations(url);
      await withClient(url, (client) => fill(client, size));
      databases.push({ size, database: openDatabase(url, () => {}) });
      const seconds = (performance.now() - startedAt) / 1000;
      process.stdout.write(`${size.toLocaleString('en')} rows loaded in ${seconds.toFixed(1)} s\n`);
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { databases, close };
}

async function createDatabase(server: string, name: string): Promise<string> {
  await withClient(server, (client) => client.query(`CREATE DATABASE ${name}`));
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

async function withClient(url: string, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await work(client).finally(() => client.end());
}
