import { readdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { schemaOf } from '@animal-store/platform/development';
import { PrismaPg } from '@prisma/adapter-pg';
import type * as Adapters from '@prisma/driver-adapter-utils';
import type { SqlDriverAdapter, SqlQuery, SqlResultSet } from '@prisma/driver-adapter-utils';
import type { MigrationList, SchemaEngine } from '@prisma/schema-engine-wasm';
import type * as EngineBindings from '@prisma/schema-engine-wasm/schema_engine_bg';
import pg from 'pg';

export type { MigrationList };

// TypeScript declares WebAssembly only as part of the whole DOM library.
declare const WebAssembly: {
  compile(bytes: Uint8Array): Promise<object>;
  instantiate(
    module: object,
    imports: object,
  ): Promise<{ readonly exports: Readonly<Record<string, unknown>> }>;
};

interface LoadedEngine {
  readonly bindings: typeof EngineBindings;
  readonly adapters: typeof Adapters;
}

/**
 * Loaded once in a process, although each test file gets this module anew. The bindings belong to a package, so all files share
 * them. Objects that one file leaves to the garbage collector would be freed in the memory of another file's instance.
 */
const processWide = globalThis as { schemaEngine?: Promise<LoadedEngine> };

/** The type that PostgreSQL calls `"char"`, which its catalogues use. */
const CHAR_OID = 18;
const TEXT_OID = 25;

/** The files of a schema, as Prisma's engine takes them. @param folder prisma/ of a store */
export async function readSchema(folder: string): Promise<{ path: string; content: string }[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.prisma'));
  const paths = names.map((name) => join(folder, name));
  return Promise.all(paths.map(async (path) => ({ path, content: await readFile(path, 'utf8') })));
}

/**
 * Runs a function with Prisma's schema engine on the schema of a URL, which the engine does not change by itself. The engine is
 * compiled to WebAssembly: `prisma migrate` downloads the same as a binary.
 */
export async function withEngine<T>(url: string, use: (engine: SchemaEngine) => Promise<T>): Promise<T> {
  processWide.schemaEngine ??= loadEngine();
  const { bindings, adapters } = await processWide.schemaEngine;
  const schema = schemaOf(url);
  // The engine releases its connections only when it is garbage-collected, so this function owns the pool and ends it.
  const pool = new pg.Pool({
    connectionString: url,
    onConnect: (connected) => connected.query(`SET search_path = ${pg.escapeIdentifier(schema)}`),
  });
  try {
    const isCharacter = markCharacters(pool);
    const factory = new PrismaPg(pool, { schema });
    const connect = factory.connect.bind(factory);
    const corrected = Object.assign(factory, {
      connect: async () => correct(await connect(), isCharacter, adapters.ColumnTypeEnum.Character),
    });
    const bound = adapters.bindMigrationAwareSqlAdapterFactory(corrected);
    return await use(await bindings.SchemaEngine.new({ datamodels: undefined }, () => {}, bound));
  } finally {
    await pool.end();
  }
}

/**
 * The adapter does not know `"char"`, so it gets such columns as text. Returns which columns of a result were `"char"`, by
 * its rows.
 */
function markCharacters(pool: pg.Pool): WeakMap<object, readonly boolean[]> {
  const isCharacter = new WeakMap<object, readonly boolean[]>();
  const query = pool.query.bind(pool) as (config: pg.QueryArrayConfig) => Promise<pg.QueryArrayResult>;
  const marked = async (config: pg.QueryArrayConfig) => {
    const result = await query(config);
    // A script of several statements has a list of results, which nobody reads.
    if (Array.isArray(result)) return result;
    const marks = result.fields.map(({ dataTypeID }) => dataTypeID === CHAR_OID);
    isCharacter.set(result.rows, marks);
    result.fields.forEach((field, index) => {
      if (marks[index]) field.dataTypeID = TEXT_OID;
    });
    return result;
  };
  Object.assign(pool, { query: marked });
  return isCharacter;
}

function correct<Adapter extends SqlDriverAdapter>(
  adapter: Adapter,
  isCharacter: WeakMap<object, readonly boolean[]>,
  character: SqlResultSet['columnTypes'][number],
): Adapter {
  const queryRaw = adapter.queryRaw.bind(adapter);
  return Object.assign(adapter, {
    async queryRaw(query: SqlQuery): Promise<SqlResultSet> {
      const result = await queryRaw(query);
      const marks = isCharacter.get(result.rows) ?? [];
      const columnTypes = result.columnTypes.map((type, index) => (marks[index] ? character : type));
      return { ...result, columnTypes };
    },
    /** The adapter splits a script at every semicolon, also within a function. A query without values is sent as it is. */
    async executeScript(script: string) {
      await adapter.executeRaw({ sql: script, args: [], argTypes: [] });
    },
  });
}

/** The package's entry imports its .wasm as a module, which Node.js 20 cannot do, so it is instantiated here. */
async function loadEngine(): Promise<LoadedEngine> {
  const bindings = await import('@prisma/schema-engine-wasm/schema_engine_bg');
  const adapters = await import('@prisma/driver-adapter-utils');
  const folder = dirname(createRequire(import.meta.url).resolve('@prisma/schema-engine-wasm'));
  const module = await WebAssembly.compile(await readFile(join(folder, 'schema_engine_bg.wasm')));
  const instance = await WebAssembly.instantiate(module, { './schema_engine_bg.js': bindings });
  bindings.__wbg_set_wasm(instance.exports);
  Object.assign(globalThis, { PRISMA_WASM_PANIC_REGISTRY: { set_message: failOnPanic } });
  (instance.exports.__wbindgen_start as () => void)();
  return { bindings, adapters };
}

function failOnPanic(message: string): never {
  throw new Error(`Prisma's schema engine failed: ${message}`);
}
