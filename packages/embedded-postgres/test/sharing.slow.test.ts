import { readdir, rm } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createInstallation, isRunning, newDataDir, open, openInOther, query } from './support.js';

let installation: string;
beforeAll(async () => {
  installation = await createInstallation();
});
afterAll(() => rm(installation, { recursive: true }));

test('a second exclusive process on the same data directory is rejected, and told the pid of the first', async () => {
  const dataDir = await newDataDir();
  await open(dataDir);
  const { error } = await openInOther(installation, dataDir);
  expect(error).toBe(
    `IN_USE Another process (pid ${process.pid}) has opened ${dataDir} in exclusive mode: stop it or choose another data directory.`,
  );
});

test('shared processes come and go beside an exclusive one, and the last to leave stops the server', async () => {
  const dataDir = await newDataDir();
  const exclusive = await open(dataDir);
  const one = await openInOther(installation, dataDir, { mode: 'shared' });
  const two = await openInOther(installation, dataDir, { mode: 'shared' });
  expect([one.url, two.url]).toEqual([exclusive.url, exclusive.url]);
  await one.end('release');
  expect(await query(exclusive.url, 'SELECT 1 AS one')).toEqual({ one: 1 });
  await exclusive.release();
  expect(await query(two.url, 'SELECT 1 AS one')).toEqual({ one: 1 });
  await two.end('release');
  expect(isRunning(dataDir)).toBe(false);
});

test('when several leave at once, the last of them stops the server', async () => {
  const dataDir = await newDataDir();
  const leaving = [
    await open(dataDir),
    await open(dataDir, { mode: 'shared' }),
    await open(dataDir, { mode: 'shared' }),
  ];
  await Promise.all(leaving.map((postgres) => postgres.release()));
  expect(isRunning(dataDir)).toBe(false);
});

test('a process that arrives while the last one leaves gets a server that stays', async () => {
  const dataDir = await newDataDir();
  let current = await open(dataDir);
  for (let round = 0; round < 5; round++) {
    const [next] = await Promise.all([open(dataDir, { mode: 'shared' }), current.release()]);
    expect(await query(next.url, 'SELECT 1 AS one')).toEqual({ one: 1 });
    current = next;
  }
});

test('when several start at once on a new data directory, one creates the database and all use it', async () => {
  const dataDir = await newDataDir();
  const modes = ['exclusive', 'shared', 'shared'] as const;
  const all = await Promise.all(modes.map((mode) => openInOther(installation, dataDir, { mode })));
  expect(all.filter(({ created }) => created)).toHaveLength(1);
  expect(new Set(all.map(({ url }) => url)).size).toBe(1);
  expect(await readdir(dataDir)).toEqual(['postgres']);
});
