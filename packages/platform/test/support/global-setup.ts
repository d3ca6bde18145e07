import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import { constants } from 'node:os';
import { createEmbeddedPostgres } from '@animal-store/embedded-postgres';
import type { TestProject } from 'vitest/node';
import { definition } from '#operations-under-test';
import { applyMigrations } from '../../src/migrations/migration-runner.js';
import { execute } from './execute.js';
import { MISSING_FOLDER } from './programs.js';
import { findRedis } from './redis.js';
import { createServiceRole, type ServiceRole } from './service-role.js';
import { createTemporaryFolder } from './temporary-folder.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** The PostgreSQL server of this run */
    postgresUrl: string;
    /** Starts the name of every database of this run */
    databasePrefix: string;
    /** A database with all migrations and no rows; tests work on copies of it. */
    template: string;
    /** What services run as, on every server of this run */
    serviceRole: ServiceRole;
  }
}

interface PostgresServer {
  /** Of a superuser */
  readonly url: string;
  close(): Promise<void>;
}

type Closer = () => Promise<void>;

declare global {
  /** What the projects of a run of tests have to close, the last first. They share a PostgreSQL and a Redis. */
  var testClosers: Closer[] | undefined;
}
globalThis.testClosers ??= [];
const closers = globalThis.testClosers;

/** Builds what is out of date, and prepares one PostgreSQL and, where there is one, one Redis for all test files. */
export default async function setUp(project: TestProject): Promise<Closer> {
  closeAtSignals();
  try {
    closers.push(await keepCompiledCode());
    build();
    project.onTestsRerun(async () => build());
    closers.push(await noteMissing());
    const redis = await findRedis();
    if (redis) {
      closers.push(() => redis.close());
      process.env.TEST_REDIS_URL = redis.url;
    }
    closers.push(await preparePostgres(project));
  } catch (error) {
    await close();
    throw error;
  }
  return close;
}

async function close(): Promise<void> {
  for (const closer of closers.splice(0).reverse()) await closer();
}

/** From 22 on, processes of Node.js that start later can use the code that earlier ones have compiled. */
async function keepCompiledCode(): Promise<Closer> {
  if (process.env.NODE_COMPILE_CACHE !== undefined) return async () => {};
  const folder = await createTemporaryFolder();
  process.env.NODE_COMPILE_CACHE = folder;
  return () => rm(folder, { recursive: true, force: true });
}

/** A signal ends the run, as the time limit of a job does. Vitest would exit within a millisecond, and leave PostgreSQL. */
function closeAtSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.removeAllListeners(signal);
    process.once(signal, () => void close().finally(() => process.exit(128 + constants.signals[signal])));
  }
}

/** Lets the tests note what this machine lacks. Closing says so in one line. */
async function noteMissing(): Promise<Closer> {
  if (process.env[MISSING_FOLDER] !== undefined) return async () => {};
  const folder = await createTemporaryFolder();
  process.env[MISSING_FOLDER] = folder;
  return async () => {
    const names = (await readdir(folder)).map(decodeURIComponent).join(', ');
    if (names)
      process.stderr.write(`Skipped the tests that need ${names}, which this machine does not have.\n`);
    await rm(folder, { recursive: true });
  };
}

async function preparePostgres(project: TestProject): Promise<Closer> {
  const prefix = `store_test_${randomBytes(4).toString('hex')}`;
  const serviceRole = { name: `${prefix}_service`, password: randomBytes(16).toString('hex') };
  const { TEST_DATABASE_URL } = process.env;
  const { url, close } = TEST_DATABASE_URL ? joinServer(TEST_DATABASE_URL, prefix) : await startServer();
  try {
    const template = `${prefix}_template`;
    await execute(url, `CREATE DATABASE ${template}`);
    const templateUrl = new URL(url);
    templateUrl.pathname = `/${template}`;
    await applyMigrations(templateUrl.href, definition.root);
    await createServiceRole(templateUrl.href, serviceRole);
    project.provide('postgresUrl', url);
    project.provide('databasePrefix', prefix);
    project.provide('template', template);
    project.provide('serviceRole', serviceRole);
  } catch (error) {
    await close();
    throw error;
  }
  return close;
}

/** The embedded PostgreSQL, in a temporary folder. */
async function startServer(): Promise<PostgresServer> {
  const dataDir = await createTemporaryFolder();
  const { url, release } = await createEmbeddedPostgres({
    dataDir,
    database: definition.identity.embedded.database,
  });
  process.env.TEST_DATABASE_URL = url;
  // Nothing in it outlives the run, so nothing has to reach the disk.
  await execute(url, 'ALTER SYSTEM SET fsync = off');
  // There are hundreds of databases, of which it would visit each once a minute.
  await execute(url, "ALTER SYSTEM SET autovacuum_naptime = '10min'");
  await execute(url, 'SELECT pg_reload_conf()');
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

/** Tests import Prisma's generated clients, and start what is in dist/. */
function build(): void {
  for (const script of ['scripts/build.js', 'scripts/test-store.js'])
    execFileSync(process.execPath, [script], { stdio: 'inherit' });
}
