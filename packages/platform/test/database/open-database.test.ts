import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createTemporaryFolder, execute } from '@animal-store/platform/testing';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { definition } from '#operations-under-test';
import { openConfiguredDatabase } from '../../src/database/open-database.js';
import { listPendingMigrations } from '../../src/migrations/migrations.js';
import { OperatorError } from '../../src/operator-errors/operator-error.js';
import { createTestDatabase } from '../support/test-service.js';

const log = { info: () => {}, warn: () => {} };
/** One for all tests, because creating a database takes seconds. */
const folder = await createTemporaryFolder();
afterAll(() => rm(folder, { recursive: true, force: true }));

const open = (dataDir: string, role: 'service' | 'guest') =>
  openConfiguredDatabase({ definition, config: { databaseUrl: undefined, dataDir }, role, log });

test('a DATA_DIR that cannot be used is rejected on one line, with the reason and what to set instead', async () => {
  const file = join(folder, 'file');
  await writeFile(file, '');
  const attempt = open(join(file, '.data'), 'service');
  await expect(attempt).rejects.toBeInstanceOf(OperatorError);
  await expect(attempt).rejects.toThrow(
    /^DATA_DIR .*file\/\.data cannot be used: .*ENOTDIR.* DATABASE_URL .*$/,
  );
});

test('the embedded database and its role keep the names that existing data directories use', async () => {
  const { url, close } = await open(folder, 'service');
  await close();
  expect(new URL(url)).toMatchObject({ username: 'boatyard', pathname: '/boatyard' });
});

test('a second service is rejected with the pid of the first and advice about DATA_DIR, and a guest may join the first', async () => {
  const first = await open(folder, 'service');
  const guest = await open(folder, 'guest');
  await expect(open(folder, 'service')).rejects.toThrow(
    `Another service (pid ${process.pid}) is running on DATA_DIR ${folder}: stop it, or set DATA_DIR to another folder.`,
  );
  expect(guest.url).toBe(first.url);
  await guest.close();
  await first.close();
});

test('a database that is left as it is gets no migration, and the next guest brings it up to date', async () => {
  const dataDir = await createTemporaryFolder();
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const config = { databaseUrl: undefined, dataDir };
  const untouched = await openConfiguredDatabase({
    definition,
    config,
    role: 'guest',
    log,
    isLeftAsItIs: true,
  });
  expect((await listPendingMigrations(definition.root, untouched.database)).length).toBeGreaterThan(0);
  await untouched.close();
  const guest = await open(dataDir, 'guest');
  expect(await listPendingMigrations(definition.root, guest.database)).toEqual([]);
  await guest.close();
});

test('nothing is reported when PostgreSQL ends a connection of the pool that is being closed', async () => {
  const warnings: string[] = [];
  const { database, close } = await openConfiguredDatabase({
    definition,
    config: { databaseUrl: undefined, dataDir: folder },
    role: 'service',
    log: { info: () => {}, warn: (_bindings, message) => warnings.push(message) },
  });
  const { rows } = await database.pool.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  const pid = rows[0]?.pid as number;
  // The process at the other end reads that the connection is being closed only after it was told to stop.
  process.kill(pid, 'SIGSTOP');
  const closed = close();
  const readStatus = async () => readFile(join(folder, 'postgres/data/postmaster.pid'), 'utf8');
  await expect.poll(readStatus).toContain('stopping');
  process.kill(pid, 'SIGCONT');
  await closed;
  expect(warnings).toEqual([]);
});

test('a connection that PostgreSQL ends is reported, and the next query gets another', async () => {
  const warnings: string[] = [];
  const databaseUrl = await createTestDatabase();
  const { database, close } = await openConfiguredDatabase({
    definition,
    config: { databaseUrl, dataDir: folder },
    role: 'service',
    log: { info: () => {}, warn: (_bindings, message) => warnings.push(message) },
  });
  const readPid = async () => (await database.pool.query('SELECT pg_backend_pid() AS pid')).rows[0]?.pid;
  const pid = await readPid();
  await execute(databaseUrl, 'SELECT pg_terminate_backend($1)', [pid]);
  await expect.poll(() => warnings).toEqual(['a database connection broke']);
  expect(await readPid()).not.toBe(pid);
  await close();
});
