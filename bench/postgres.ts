import { rm } from 'node:fs/promises';
import { createEmbeddedPostgres } from '@animal-store/embedded-postgres';
import { createTemporaryFolder } from '@animal-store/platform/testing';
import pg from 'pg';
import { migrate } from './checkout.js';
import { readTreeCpuTime } from './cpu-time.js';

/** A PostgreSQL of the bench's own, started with this process's CPU affinity and deleted when it is closed. */
export interface BenchPostgres {
  /** Of a superuser */
  readonly url: string;
  /** Creates a database, migrated by the command line of the checkout; returns its URL. */
  createDatabase(name: string, checkout: string): Promise<string>;
  /** CPU time of all its processes since the start, in microseconds */
  cpuTime(): number;
  close(): Promise<void>;
}

/** @param settings SQL: ALTER SYSTEM statements that take effect at its start */
export async function startPostgres(settings: readonly string[] = []): Promise<BenchPostgres> {
  const dataDir = await createTemporaryFolder();
  let postgres = await createEmbeddedPostgres({ dataDir, database: 'bench' });
  if (settings.length > 0) {
    for (const setting of settings) await withClient(postgres.url, (client) => client.query(setting));
    await postgres.release();
    postgres = await createEmbeddedPostgres({ dataDir, database: 'bench' });
  }
  const { rows } = await withClient(postgres.url, (client) =>
    client.query<{ pid: number }>(`SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::int AS pid`),
  );
  return {
    url: postgres.url,
    cpuTime: () => readTreeCpuTime(rows[0]?.pid),
    async createDatabase(name, checkout) {
      await withClient(postgres.url, (client) => client.query(`CREATE DATABASE ${name}`));
      const url = new URL(postgres.url);
      url.pathname = `/${name}`;
      await migrate(checkout, url.href);
      return url.href;
    },
    async close() {
      await postgres.release();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

export async function withClient<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return use(client).finally(() => client.end());
}
