import { spawn } from 'node:child_process';
import { mkdir, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import {
  createInstallation,
  isRoot,
  lockFile,
  newDataDir,
  open,
  openInOther,
  query,
  readServerPid,
  readStartTime,
  spawnOther,
} from './support.js';

let installation: string;
beforeAll(async () => {
  installation = await createInstallation();
});
afterAll(() => rm(installation, { recursive: true }));

test('a first start that is killed halfway leaves nothing that a later one mistakes for a database', async () => {
  const dataDir = await newDataDir();
  const { child } = spawnOther(installation, dataDir);
  await vi.waitFor(async () => expect(await readdir(dataDir)).toHaveLength(1), 20_000);
  child.kill('SIGKILL');
  expect(await readdir(dataDir)).not.toContain('postgres');
  expect(await open(dataDir)).toMatchObject({ created: true });
});

test('leftovers of a killed start are removed later, but not while they may be in use', async () => {
  const dataDir = await newDataDir();
  for (const name of ['abandoned', 'recent'])
    await mkdir(join(dataDir, `postgres.new-${name}`), { recursive: true });
  const twoHoursAgo = Date.now() / 1000 - 7200;
  await utimes(join(dataDir, 'postgres.new-abandoned'), twoHoursAgo, twoHoursAgo);
  await open(dataDir);
  expect((await readdir(dataDir)).sort()).toEqual(['postgres', 'postgres.new-recent']);
});

test('a server whose process was killed is adopted while it runs', async () => {
  const dataDir = await newDataDir();
  const killed = await openInOther(installation, dataDir);
  const startTime = await readStartTime(killed.url);
  await killed.end('SIGKILL');
  const { url } = await open(dataDir);
  expect(url).toBe(killed.url);
  expect(await readStartTime(url)).toBe(startTime);
});

test('a killed PostgreSQL comes back at the same address with everything that was committed', async () => {
  const dataDir = await newDataDir();
  const onError = vi.fn();
  const { url } = await open(dataDir, { onError });
  await query(url, 'CREATE TABLE item AS SELECT 7 AS id');
  const startTime = await readStartTime(url);
  process.kill(readServerPid(dataDir), 'SIGKILL');
  await vi.waitFor(async () => expect(await query(url, 'SELECT id FROM item')).toEqual({ id: 7 }), 20_000);
  expect(await readStartTime(url)).not.toBe(startTime);
  expect(onError).toHaveBeenCalled();
  // The lease covers the new server too.
  const attempt = async () => expect((await openInOther(installation, dataDir)).error).toMatch(/^IN_USE /);
  await vi.waitFor(attempt, 20_000);
});

test('the database serves again, and is leased, after the backend of the lease was killed', async () => {
  const { url } = await open(await newDataDir());
  const { pid } = await query(url, `SELECT pid FROM pg_stat_activity WHERE datname = 'postgres'`);
  process.kill(Number(pid), 'SIGKILL');
  const held = `SELECT count(*)::int AS locks FROM pg_locks WHERE locktype = 'advisory' AND pid <> ${pid}`;
  await vi.waitFor(async () => expect(await query(url, held)).toEqual({ locks: 2 }), 20_000);
});

test('a stale lock file whose process number now belongs to another process does not prevent a start', async () => {
  const dataDir = await newDataDir();
  const killed = await openInOther(installation, dataDir);
  const { uid, gid } = await stat(join(dataDir, 'postgres'));
  const unrelated = spawn('sleep', ['60'], isRoot ? { uid, gid } : {});
  try {
    await killed.end('SIGKILL');
    process.kill(readServerPid(dataDir), 'SIGKILL');
    const lock = await readFile(lockFile(dataDir), 'utf8');
    await writeFile(lockFile(dataDir), lock.replace(/^\d+/, String(unrelated.pid)));
    const { url } = await open(dataDir);
    expect(await query(url, 'SELECT 1 AS one')).toEqual({ one: 1 });
    expect(unrelated.exitCode).toBeNull();
  } finally {
    unrelated.kill();
  }
});

test('Ctrl-C in the terminal does not reach PostgreSQL', async () => {
  const dataDir = await newDataDir();
  const other = await openInOther(installation, dataDir);
  const startTime = await readStartTime(other.url);
  process.kill(-other.pid, 'SIGINT');
  expect(await other.next()).toEqual({ interrupted: true });
  expect(await readStartTime(other.url)).toBe(startTime);
});
