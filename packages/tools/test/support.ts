import { randomUUID } from 'node:crypto';
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createEmbeddedPostgres } from '@animal-store/embedded-postgres';
import pg from 'pg';
import { onTestFinished } from 'vitest';
import { findStore, loadStore, type Store } from '../src/store.js';

/** The folder of the packages that are installed */
const INSTALLED = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), '..');

export async function createFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'store-tools-test-'));
  // Started as root, PostgreSQL runs as another account, which has to enter.
  await chmod(folder, 0o711);
  return folder;
}

const SCHEMA = `
  generator client {
    provider        = "prisma-client"
    output          = "../generated"
    previewFeatures = ["partialIndexes"]
  }
  datasource db {
    provider = "postgresql"
  }
  enum BoatStatus {
    for_sale
    sold
    @@map("boat_status")
  }
  model Boat {
    id     BigInt     @id @default(autoincrement())
    name   String
    status BoatStatus @default(for_sale)
    @@index([status, id])
    @@map("boats")
  }`;

const DEFINITION = `
  export const definition = {
    root: new URL('../', import.meta.url),
    identity: {
      name: 'harbour', title: 'Harbour', description: 'The boats of a harbour.', interfaceVersion: '1.0.0',
      keyPrefix: 'h_', metricsPrefix: 'harbour_', embedded: { database: 'harbour', systemDir: '/var/lib/harbour' },
      grants: { boats: ['SELECT', 'INSERT'] }, mainTable: 'boats', mainPath: '/boats', mainOperation: 'listBoats',
    },
    windows: [
      { name: 'minute', lengthMs: 60_000, field: 'perMinute' },
      { name: 'day', lengthMs: 86_400_000, field: 'perDay' },
    ],
    plans: { trial: { perMinute: 30 }, custom: undefined },
    fallbackPlan: 'trial',
    developmentPlan: 'trial',
    scopes: ['boats:read', 'boats:write'],
    errors: {},
    loadPrisma: async () => { throw new Error('not generated'); },
  };`;

const ROUTER = `
  import { assignedId, answerPage, pageInput, pageOutput, text } from '@animal-store/platform/operations';
  import { defineStore } from '@animal-store/platform/store';
  import { createInsert, createReads, table } from '@animal-store/platform/tables';
  import { z } from 'zod';
  import { definition } from './definition.js';

  const { createProcedure } = defineStore(definition);
  const procedure = createProcedure();
  const members = { name: text(1, 100).meta({ description: 'On the bow', examples: ['Grebe'] }) };
  const boat = z
    .object({ id: assignedId().meta({ description: 'The id', examples: [7] }), ...members })
    .meta({ id: 'Boat' });
  const rows = table('boats', { id: 'bigint', name: 'text' });
  const listBoats = procedure
    .meta({ openapi: { method: 'GET', path: '/boats', summary: 'List boats' }, stability: 'stable', scope: 'boats:read' })
    .input(pageInput({}))
    .output(pageOutput(boat).meta({ id: 'Boats', description: 'By ascending id' }))
    .query(async ({ ctx, input }) => answerPage(ctx, input, await ctx.boats.list(input)));
  const createBoat = procedure
    .meta({
      openapi: { method: 'POST', path: '/boats', summary: 'Add a boat' },
      stability: 'stable', scope: 'boats:write', success: { status: 201 }, idempotent: true,
    })
    .input(z.object(members).meta({ id: 'NewBoat' }))
    .output(boat)
    .mutation(({ ctx, input }) => ctx.once((key) => ctx.boats.create(input, key)));
  export const resources = [{
    name: 'boats',
    description: 'The boats',
    createStore: (database) => ({ ...createReads(database, rows), create: createInsert(database, rows) }),
    procedures: { listBoats, createBoat },
  }];`;

/** Writes files below a folder, by their paths. */
export async function write(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
}

/** An empty project outside of this repository: a built store without a migration. It is removed after the test. */
export async function createProject(): Promise<string> {
  const folder = await createFolder();
  onTestFinished(() => rm(folder, { recursive: true }));
  await write(folder, {
    'package.json': '{ "type": "module", "version": "1.0.0", "scripts": { "draft": "store-tools draft" } }',
    'prisma/schema.prisma': SCHEMA,
    'dist/definition.js': DEFINITION,
    'dist/router.js': ROUTER,
  });
  await symlink(INSTALLED, join(folder, 'node_modules'));
  return folder;
}

/** The store of a project, with other members in its definition */
export async function load(folder: string, members: Partial<Store['definition']> = {}): Promise<Store> {
  const store = await loadStore(findStore(folder));
  return { ...store, definition: { ...store.definition, ...members } };
}

/** The server of this run of tests, or one that ends with the returned function. */
export async function openServer(): Promise<{ url: string; close(): Promise<void> }> {
  const { TEST_DATABASE_URL: url } = process.env;
  if (url) return { url, close: async () => {} };
  const dataDir = await createFolder();
  const server = await createEmbeddedPostgres({ dataDir, database: 'harbour' });
  return {
    url: server.url,
    async close() {
      await server.release();
      await rm(dataDir, { recursive: true });
    },
  };
}

/** Runs statements on a connection of their own. Resolves with the rows of a single one. */
export async function execute<Row extends pg.QueryResultRow>(url: string, sql: string): Promise<Row[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query<Row>(sql)).rows;
  } finally {
    await client.end();
  }
}

/** An empty database, which is dropped after the test. */
export async function createDatabase(server: string): Promise<string> {
  const name = `tools_${randomUUID()}`;
  await execute(server, `CREATE DATABASE "${name}" TEMPLATE template0`);
  onTestFinished(async () => void (await execute(server, `DROP DATABASE "${name}" WITH (FORCE)`)));
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}
