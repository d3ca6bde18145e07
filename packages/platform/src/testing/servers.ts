import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { openDatabase } from '../connections/client.js';
import type { Definition } from '../definition/definition.js';
import { checkSoldInDatabase } from '../migrations/definition-gap.js';
import { applyGrants } from '../migrations/grants.js';
import { applyMigrations } from '../migrations/migration-runner.js';
import { execute } from './execute.js';
import { createTemporaryFolder } from './temporary-folder.js';

/** A variable of the process, so that the processes in which files of tests run have it, too */
const PREPARED = 'STORE_TEST_SERVERS';

/** What a run of tests has prepared for a store. */
export interface Servers {
  /** Of a superuser */
  readonly url: string;
  /** Starts the name of every database and role of the run */
  readonly prefix: string;
  /** A database with all migrations and no rows; tests work on copies of it */
  readonly template: string;
  /** What services run as: it has the documented grants, and nothing else */
  readonly serviceRole: { readonly name: string; readonly password: string };
}

interface PostgresServer {
  readonly url: string;
  close(): Promise<void>;
}

/**
 * Prepares one PostgreSQL for all files of a run: the server of TEST_DATABASE_URL, whose user has to be a superuser, or else an
 * embedded one of its own in a temporary folder. Call it in what runs before all files, such as Vitest's `globalSetup`. Without
 * it, the files that start a store do this for themselves.
 *
 * @returns a function that ends the server, or deletes what the run has added to one that it has found
 */
export async function prepareServers(definition: Definition): Promise<() => Promise<void>> {
  const { identity, root } = definition;
  const prefix = `store_test_${randomBytes(4).toString('hex')}`;
  const serviceRole = { name: `${prefix}_service`, password: randomBytes(16).toString('hex') };
  const template = `${prefix}_template`;
  const { TEST_DATABASE_URL } = process.env;
  const server = TEST_DATABASE_URL
    ? joinServer(TEST_DATABASE_URL, prefix)
    : await startServer(identity.embedded.database);
  try {
    await execute(server.url, `CREATE DATABASE ${template}`);
    const migrated = withPath(server.url, template);
    await applyMigrations(migrated, root);
    await checkSold(definition, migrated);
    await execute(migrated, `CREATE ROLE ${serviceRole.name} LOGIN PASSWORD '${serviceRole.password}'`);
    await applyGrants(identity.grants, migrated, serviceRole.name, 'service');
    const prepared: Servers = { url: server.url, prefix, template, serviceRole };
    process.env[PREPARED] = JSON.stringify({ ...readAll(), [root.href]: prepared });
  } catch (error) {
    await server.close();
    throw error;
  }
  return server.close;
}

/** A key with a plan or a scope that no migration has added would fail in each test, and not say why. */
async function checkSold(definition: Definition, url: string): Promise<void> {
  const database = openDatabase(url, () => {}, definition);
  await checkSoldInDatabase(definition, database).finally(() => database.close());
}

/**
 * Creates a database with the migrations of a store, and resolves with the URL of its owner.
 *
 * @param template another database to copy, such as `template0` for an empty one
 */
export async function createTestDatabase(definition: Definition, template?: string): Promise<string> {
  const prepared = readServers(definition);
  const name = `${prepared.prefix}_${randomBytes(6).toString('hex')}`;
  await execute(prepared.url, `CREATE DATABASE ${name} TEMPLATE ${template ?? prepared.template}`);
  return withPath(prepared.url, name);
}

/** The URL of a test database as services use it: as a role with the grants of `migrate --grant-to`, and nothing else. */
export function asServiceRole(definition: Definition, databaseUrl: string): string {
  const { identity, root } = definition;
  const prepared = readAll()[root.href];
  // The superuser of an embedded PostgreSQL is called as its database.
  const owners = [identity.embedded.database, prepared && new URL(prepared.url).username];
  if (prepared === undefined || !owners.includes(new URL(databaseUrl).username)) return databaseUrl;
  const { name, password } = prepared.serviceRole;
  return Object.assign(new URL(databaseUrl), { username: name, password }).href;
}

/** The servers that this process has prepared for itself, by the folder of the store, and how many of its stores use them */
const own = new Map<string, { readonly close: Promise<() => Promise<void>>; users: number }>();

/**
 * Prepares the servers of a store unless the run has.
 *
 * @returns a function that ends them with the last that uses them in this process
 */
export async function useServers(definition: Definition): Promise<() => Promise<void>> {
  const { href } = definition.root;
  if (readAll()[href] !== undefined && !own.has(href)) return async () => {};
  const servers = own.get(href) ?? { close: prepareServers(definition), users: 0 };
  own.set(href, servers);
  servers.users += 1;
  const release = async () => {
    servers.users -= 1;
    if (servers.users > 0) return;
    own.delete(href);
    const { [href]: _, ...others } = readAll();
    process.env[PREPARED] = JSON.stringify(others);
    await (await servers.close)();
  };
  await servers.close.catch(async (error: unknown) => {
    own.delete(href);
    throw error;
  });
  return release;
}

const readAll = (): Readonly<Record<string, Servers>> => JSON.parse(process.env[PREPARED] ?? '{}');

/** @throws Error where nothing is prepared, or no longer is */
export function readServers({ identity: { name }, root }: Pick<Definition, 'identity' | 'root'>): Servers {
  const prepared = readAll()[root.href];
  if (prepared === undefined)
    throw new Error(
      `No PostgreSQL is prepared for ${name}: call prepareServers() in the setup of the tests, or startStore() before this`,
    );
  return prepared;
}

function withPath(url: string, database: string): string {
  return Object.assign(new URL(url), { pathname: `/${database}` }).href;
}

/** The embedded PostgreSQL, in a temporary folder. */
async function startServer(database: string): Promise<PostgresServer> {
  const { createEmbeddedPostgres } = await import('@animal-store/embedded-postgres');
  const dataDir = await createTemporaryFolder();
  const { url, release } = await createEmbeddedPostgres({ dataDir, database });
  const { username, password } = new URL(url);
  // Nothing in it outlives the run, so nothing has to reach the disk.
  await execute(url, 'ALTER SYSTEM SET fsync = off');
  // There may be hundreds of databases, of which it would visit each once a minute.
  await execute(url, "ALTER SYSTEM SET autovacuum_naptime = '10min'");
  // Tests open thousands of connections, and the 4,096 iterations of a guarded password cost each 10 ms of CPU.
  await execute(url, 'ALTER SYSTEM SET scram_iterations = 1');
  await execute(url, 'SELECT pg_reload_conf()');
  await execute(url, `SET scram_iterations = 1; ALTER ROLE ${username} PASSWORD '${password}'`);
  return {
    url,
    async close() {
      await release();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** A server that runs already, where only the databases and the role of this run are deleted. */
function joinServer(url: string, prefix: string): PostgresServer {
  return {
    url,
    async close() {
      const databases = await execute(url, `SELECT datname FROM pg_database WHERE datname LIKE '${prefix}%'`);
      for (const { datname } of databases) await execute(url, `DROP DATABASE ${datname} WITH (FORCE)`);
      await execute(url, `DROP ROLE IF EXISTS ${prefix}_service`);
    },
  };
}
