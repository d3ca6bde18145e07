import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PrismaPg } from '@prisma/adapter-pg';
import { bindMigrationAwareSqlAdapterFactory } from '@prisma/driver-adapter-utils';
import type { MigrationList, SchemaEngine } from '@prisma/schema-engine-wasm';
import * as engineBindings from '@prisma/schema-engine-wasm/schema_engine_bg';
import pg from 'pg';
import { OperatorError, toDatabaseError } from '../operator-error.js';

// TypeScript declares WebAssembly only as part of the whole DOM library.
declare const WebAssembly: {
  compile(bytes: Uint8Array): Promise<object>;
  instantiate(
    module: object,
    imports: object,
  ): Promise<{ readonly exports: Readonly<Record<string, unknown>> }>;
};

const PRISMA_FOLDER = fileURLToPath(new URL('../../prisma/', import.meta.url));
const MIGRATIONS_FOLDER = join(PRISMA_FOLDER, 'migrations');
/** Longer than a request may wait: nobody repeats a migration as readily. */
const CONNECT_TIMEOUT_MS = 10_000;
const ALL_SCHEMAS = { externalTables: [], externalEnums: [] };

/**
 * The names of the migrations in prisma/migrations that the database lacks, in order. Reads Prisma's own table
 * `_prisma_migrations` and nothing else, so that a start with nothing to apply never loads the engine.
 *
 * @throws OperatorError when an applied migration was edited afterwards, naming it, or the database cannot be used
 */
export async function listPendingMigrations(pool: pg.Pool): Promise<string[]> {
  const applied = await readAppliedMigrations(pool);
  const { migrationDirectories } = await readMigrations();
  const pending = migrationDirectories.filter(({ path, migrationFile }) => {
    const checksum = applied.get(path);
    if (checksum === undefined) return true;
    const { content } = migrationFile;
    if (content.tag === 'ok' && sha256(content.value) !== checksum) {
      throw new OperatorError(
        `Migration ${path} was changed after it was applied: restore the file and add a new migration. ` +
          'If it was never released and this is a development database, delete DATA_DIR (.data) instead.',
      );
    }
    return false;
  });
  return pending.map(({ path }) => path);
}

/**
 * Applies the pending migrations with Prisma's schema engine, in this process: the same engine and the same table
 * `_prisma_migrations` as `prisma migrate deploy`, without the binary that its command line would download.
 *
 * @returns the names of the migrations applied now
 * @throws OperatorError when the database cannot be used or a migration fails; it is then marked as failed, as Prisma does
 */
export async function applyMigrations(url: string): Promise<string[]> {
  return withEngine(url, async (engine) => {
    const migrationsList = await readMigrations();
    const { appliedMigrationNames } = await engine
      .applyMigrations({ migrationsList, filters: ALL_SCHEMAS })
      .catch((error: unknown) => {
        throw toMigrationError(error);
      });
    return appliedMigrationNames;
  });
}

/** The SQL with which Prisma's engine would create schema.prisma in an empty database. Changes nothing there. */
export async function printSchema(url: string): Promise<string> {
  const path = join(PRISMA_FOLDER, 'schema.prisma');
  const files = [{ path, content: await readFile(path, 'utf8') }];
  return withEngine(url, async (engine) => {
    const { stdout } = await engine.diff({
      from: { tag: 'empty' },
      to: { tag: 'schemaDatamodel', files },
      script: true,
      exitCode: null,
      filters: ALL_SCHEMAS,
    });
    return stdout ?? '';
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

async function readAppliedMigrations(pool: pg.Pool): Promise<Map<string, string>> {
  try {
    const { rows: tables } = await pool.query(`SELECT to_regclass('_prisma_migrations') AS found`);
    if (tables[0].found === null) return new Map();
    const { rows } = await pool.query<{ name: string; checksum: string }>(
      'SELECT migration_name AS name, checksum FROM _prisma_migrations WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL',
    );
    return new Map(rows.map(({ name, checksum }) => [name, checksum]));
  } catch (error) {
    throw toDatabaseError(error);
  }
}

async function readMigrations(): Promise<MigrationList> {
  const entries = await readdir(MIGRATIONS_FOLDER, { withFileTypes: true });
  const names = entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort();
  const migrationDirectories = await Promise.all(
    names.map(async (name) => ({
      path: name,
      migrationFile: {
        path: 'migration.sql',
        content: {
          tag: 'ok' as const,
          value: await readFile(join(MIGRATIONS_FOLDER, name, 'migration.sql'), 'utf8'),
        },
      },
    })),
  );
  const lockfile = {
    path: 'migration_lock.toml',
    content: await readFile(join(MIGRATIONS_FOLDER, 'migration_lock.toml'), 'utf8'),
  };
  return { baseDir: MIGRATIONS_FOLDER, lockfile, shadowDbInitScript: '', migrationDirectories };
}

async function withEngine<T>(url: string, use: (engine: SchemaEngine) => Promise<T>): Promise<T> {
  // The engine releases its connections only when it is garbage-collected, so this function owns the pool and ends it.
  const pool = new pg.Pool({ connectionString: url, connectionTimeoutMillis: CONNECT_TIMEOUT_MS });
  try {
    await checkConnection(pool);
    const { SchemaEngine } = await loadEngineOnce();
    const adapter = bindMigrationAwareSqlAdapterFactory(new PrismaPg(pool));
    const engine = await SchemaEngine.new({ datamodels: undefined }, () => {}, adapter);
    return await use(engine);
  } finally {
    await pool.end();
  }
}

/** The engine would not say why it cannot connect. */
async function checkConnection(pool: pg.Pool): Promise<void> {
  try {
    await pool.query('SELECT 1');
  } catch (error) {
    throw toDatabaseError(error);
  }
}

let loadedEngine: Promise<typeof engineBindings> | undefined;

/** Loads the engine at most once: its bindings keep views into the memory of the first instance that they are given. */
function loadEngineOnce(): Promise<typeof engineBindings> {
  loadedEngine ??= loadEngine();
  return loadedEngine;
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

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
