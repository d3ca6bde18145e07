import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { PrismaPg } from '@prisma/adapter-pg';
import { bindMigrationAwareSqlAdapterFactory } from '@prisma/driver-adapter-utils';
import type { SchemaEngine } from '@prisma/schema-engine-wasm';
import * as engineBindings from '@prisma/schema-engine-wasm/schema_engine_bg';
import pg from 'pg';
import { COMMAND_CONNECT_TIMEOUT_MS } from '../batching/timeouts.js';
import { OperatorError } from '../errors/operator-error.js';
import { readMigrations } from './migrations.js';
import { toDatabaseError } from './outage.js';

// TypeScript declares WebAssembly only as part of the whole DOM library.
declare const WebAssembly: {
  compile(bytes: Uint8Array): Promise<object>;
  instantiate(
    module: object,
    imports: object,
  ): Promise<{ readonly exports: Readonly<Record<string, unknown>> }>;
};

/** Loaded at most once: the bindings keep views into the memory of the first instance that they are given. */
let loadedEngine: Promise<typeof engineBindings> | undefined;

export const ALL_SCHEMAS = { externalTables: [], externalEnums: [] };

/**
 * Applies the pending migrations with Prisma's schema engine, in this process: the same engine and the same table
 * `_prisma_migrations` as `prisma migrate deploy`, without the binary that its command line would download.
 *
 * @param folder Default: prisma/migrations
 * @returns the names of the migrations applied now
 * @throws OperatorError when the database cannot be used or a migration fails; it is then marked as failed, as Prisma does
 */
export async function applyMigrations(url: string, folder?: string): Promise<string[]> {
  return withEngine(url, async (engine) => {
    const migrationsList = await readMigrations(folder);
    const { appliedMigrationNames } = await engine
      .applyMigrations({ migrationsList, filters: ALL_SCHEMAS })
      .catch((error: unknown) => {
        throw toMigrationError(error);
      });
    return appliedMigrationNames;
  });
}

/** Prisma's engine says what PostgreSQL reported, and then how it got there. */
function toMigrationError(error: unknown): OperatorError {
  const message = error instanceof Error ? error.message : String(error);
  const [text = '', calls = ''] = message.split(/\n(?=\s+0: )/);
  const reason = /ERROR: (.*)/.exec(text)?.[1] ?? text.split('\n')[0];
  const failed = /migration_name="(.+)"/.exec(calls)?.[1];
  const failedBefore = /The `(.+)` migration started at .* failed/.exec(text)?.[1];
  if (failed === undefined && failedBefore === undefined) {
    return new OperatorError(
      `The migrations cannot be applied (${reason}): check that DATABASE_URL points to the right database, with a role that may create tables there.`,
      { cause: error },
    );
  }
  const what = failed === undefined ? `${failedBefore} failed earlier` : `${failed} failed (${reason})`;
  return new OperatorError(
    `Migration ${what}: remove the cause, restore the backup (or undo its changes and delete its row from ` +
      '_prisma_migrations), and apply it again with: npm run migrate. ' +
      'If this is a development database, delete DATA_DIR (.data) instead.',
    { cause: error },
  );
}

/** Lets something use the engine on a database, which it does not change by itself. */
export async function withEngine<T>(url: string, use: (engine: SchemaEngine) => Promise<T>): Promise<T> {
  // The engine releases its connections only when it is garbage-collected, so this function owns the pool and ends it.
  const pool = new pg.Pool({
    connectionString: url,
    connectionTimeoutMillis: COMMAND_CONNECT_TIMEOUT_MS,
    // The role may have the timeout of a request, as a connection pooler requires.
    onConnect: (connected) => connected.query('SET statement_timeout = 0'),
  });
  try {
    await checkConnection(pool);
    loadedEngine ??= loadEngine();
    const { SchemaEngine } = await loadedEngine;
    const adapter = bindMigrationAwareSqlAdapterFactory(sendWholeScripts(new PrismaPg(pool)));
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

/** The engine would not say why it cannot connect. */
async function checkConnection(pool: pg.Pool): Promise<void> {
  try {
    await pool.query('SELECT 1');
  } catch (error) {
    throw toDatabaseError(error);
  }
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
