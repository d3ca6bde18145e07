import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { PrismaPg } from '@prisma/adapter-pg';
import { bindMigrationAwareSqlAdapterFactory } from '@prisma/driver-adapter-utils';
import type { MigrationList, SchemaEngine } from '@prisma/schema-engine-wasm';
import * as engineBindings from '@prisma/schema-engine-wasm/schema_engine_bg';
import pg from 'pg';
import { schemaOf } from '../../src/platform/connections/schema-name.js';
import { PRISMA_FOLDER, readMigrations } from '../../src/platform/migrations/migrations.js';

// TypeScript declares WebAssembly only as part of the whole DOM library.
declare const WebAssembly: {
  compile(bytes: Uint8Array): Promise<object>;
  instantiate(
    module: object,
    imports: object,
  ): Promise<{ readonly exports: Readonly<Record<string, unknown>> }>;
};

/**
 * Loaded once in a process, although each test file gets this module anew: the bindings belong to a package, so all files
 * share them, and what one file has left to the garbage collector would be freed in the memory of another one's instance.
 */
const processWide = globalThis as { loadedSchemaEngine?: Promise<typeof engineBindings> };

export const ALL_SCHEMAS = { externalTables: [], externalEnums: [] };

/** What `prisma migrate deploy` does: it calls the same engine, as a binary that it downloads. */
export async function applyWithEngine(url: string, folder?: string): Promise<string[]> {
  const migrationsList = await listMigrations(folder);
  return withEngine(url, async (engine) => {
    const { appliedMigrationNames } = await engine.applyMigrations({ migrationsList, filters: ALL_SCHEMAS });
    return appliedMigrationNames;
  });
}

/** What `prisma migrate status` is told: the migrations that were edited after they had been applied, and that failed. */
export async function diagnose(url: string, folder?: string) {
  const migrationsList = await listMigrations(folder);
  return withEngine(url, (engine) =>
    engine.diagnoseMigrationHistory({ migrationsList, optInToShadowDatabase: false, filters: ALL_SCHEMAS }),
  );
}

/** The files as they are, line ends included. */
async function listMigrations(folder = join(PRISMA_FOLDER, 'migrations')): Promise<MigrationList> {
  const migrations = await readMigrations(folder);
  const migrationDirectories = await Promise.all(
    migrations.map(async ({ name }) => {
      const value = await readFile(join(folder, name, 'migration.sql'), 'utf8');
      return {
        path: name,
        migrationFile: { path: 'migration.sql', content: { tag: 'ok' as const, value } },
      };
    }),
  );
  const content = 'provider = "postgresql"\n';
  const lockfile = { path: 'migration_lock.toml', content };
  return { baseDir: folder, lockfile, shadowDbInitScript: '', migrationDirectories };
}

/** Lets something use the engine on the schema of a URL, which it does not change by itself. */
export async function withEngine<T>(url: string, use: (engine: SchemaEngine) => Promise<T>): Promise<T> {
  const schema = schemaOf(url);
  // The engine releases its connections only when it is garbage-collected, so this function owns the pool and ends it.
  const pool = new pg.Pool({
    connectionString: url,
    onConnect: (connected) => connected.query(`SET search_path = ${pg.escapeIdentifier(schema)}`),
  });
  try {
    processWide.loadedSchemaEngine ??= loadEngine();
    const { SchemaEngine } = await processWide.loadedSchemaEngine;
    const adapter = bindMigrationAwareSqlAdapterFactory(sendWholeScripts(new PrismaPg(pool, { schema })));
    const engine = await SchemaEngine.new({ datamodels: undefined }, () => {}, adapter);
    return await use(engine);
  } finally {
    await pool.end();
  }
}

/** The adapter splits a script at every semicolon, also within a function. A query without values is sent as it is. */
function sendWholeScripts(factory: PrismaPg): PrismaPg {
  const connect = factory.connect.bind(factory);
  return Object.assign(factory, {
    async connect() {
      const adapter = await connect();
      return Object.assign(adapter, {
        async executeScript(script: string) {
          await adapter.executeRaw({ sql: script, args: [], argTypes: [] });
        },
      });
    },
  });
}

/** The package's entry imports its .wasm as a module, which Node.js 20 cannot do, so it is instantiated here. */
async function loadEngine(): Promise<typeof engineBindings> {
  const folder = dirname(createRequire(import.meta.url).resolve('@prisma/schema-engine-wasm'));
  const module = await WebAssembly.compile(await readFile(join(folder, 'schema_engine_bg.wasm')));
  const instance = await WebAssembly.instantiate(module, { './schema_engine_bg.js': engineBindings });
  engineBindings.__wbg_set_wasm(instance.exports);
  Object.assign(globalThis, { PRISMA_WASM_PANIC_REGISTRY: { set_message: failOnPanic } });
  (instance.exports.__wbindgen_start as () => void)();
  return engineBindings;
}

function failOnPanic(message: string): never {
  throw new Error(`Prisma's schema engine failed: ${message}`);
}
