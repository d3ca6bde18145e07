import { execFileSync } from 'node:child_process';
import { readdir, rm } from 'node:fs/promises';
import { constants } from 'node:os';
import { findRedis, MISSING_FOLDER } from '@animal-store/limits/testing';
import { createTemporaryFolder, prepareServers, readServers } from '@animal-store/platform/testing';
import type { TestProject } from 'vitest/node';

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
    closers.push(await preparePostgres());
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

/** The projects of a run share one PostgreSQL. */
async function preparePostgres(): Promise<Closer> {
  // Imported now, because the build has just made the Prisma client that it imports.
  const { definition } = await import('#operations-under-test');
  const close = await prepareServers(definition);
  process.env.TEST_DATABASE_URL ??= readServers(definition).url;
  return close;
}

/** Tests import Prisma's generated clients, and start what is in dist/. */
function build(): void {
  for (const script of ['scripts/build.js', 'scripts/boatyard.js'])
    execFileSync(process.execPath, [script], { stdio: 'inherit' });
}
