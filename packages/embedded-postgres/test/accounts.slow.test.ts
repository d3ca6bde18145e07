import { execFileSync } from 'node:child_process';
import { chmod, chown, readdir, realpath, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import {
  BINARIES,
  createDirectory,
  createInstallation,
  isRoot,
  NOBODY,
  newDataDir,
  open,
  openInOther,
  query,
  readServerPid,
} from './support.js';

let installation: string;
const libraries = () => join(installation, 'node_modules', BINARIES, 'native/lib');

beforeAll(async () => {
  installation = await createInstallation();
});
afterAll(() => rm(installation, { recursive: true }));

/** As after `npm ci --ignore-scripts`, which creates no links. */
beforeEach(async () => {
  await chmod(installation, 0o755);
  execFileSync('find', [libraries(), '-type', 'l', '-delete']);
  if (isRoot) await chown(libraries(), 0, 0);
});

test.runIf(isRoot)(
  'root can keep the project where only root may enter, and its modes do not change',
  async () => {
    await chmod(installation, 0o700);
    const systemDir = join(await createDirectory(), 'system');
    const dataDir = join(await createDirectory(0o700), '.data');
    const { url } = await openInOther(installation, dataDir, { systemDir });
    expect(await query(url, 'SELECT 1 AS one')).toEqual({ one: 1 });
    expect((await stat(installation)).mode & 0o777).toBe(0o700);
    expect(await readdir(systemDir)).toContainEqual(expect.stringMatching(/^postgresql-\d/));
  },
);

test('an ordinary user can create a database that root then runs as that user', async () => {
  const directory = await createDirectory();
  if (isRoot) for (const path of [directory, libraries()]) await chown(path, NOBODY, NOBODY);
  const dataDir = join(directory, '.data');
  const ordinary = await openInOther(installation, dataDir, isRoot ? { uid: NOBODY } : {});
  expect(ordinary).toMatchObject({ created: true });
  expect(await query(ordinary.url, 'SELECT 1 AS one')).toEqual({ one: 1 });
  await ordinary.end('release');
  const { url } = await open(dataDir);
  expect(url).toBe(ordinary.url);
  if (isRoot) expect((await stat(`/proc/${readServerPid(dataDir)}`)).uid).toBe(NOBODY);
});

test.runIf(isRoot)(
  'the error for a library whose link cannot be created names it and says what to do',
  async () => {
    const directory = await createDirectory(0o777);
    const { error } = await openInOther(installation, join(directory, '.data'), { uid: NOBODY });
    expect(error).toMatch(/^CANNOT_RUN .*lib\w+\.so.*run npm rebuild/);
  },
);

test.runIf(isRoot)('a data directory of another user is rejected', async () => {
  const dataDir = await newDataDir();
  const ofOthers = await open(dataDir);
  await ofOthers.release();
  const { error } = await openInOther(installation, dataDir, { uid: NOBODY });
  expect(error).toMatch(/belongs to another user .*: run as that user or choose another data directory/);
  const other = join(dirname(dataDir), 'new');
  const { error: newError } = await openInOther(installation, other, { uid: NOBODY });
  expect(newError).toMatch(/cannot hold a database .*: choose another data directory/);
});

test.runIf(isRoot)(
  'root can have its data directory where only root may enter, and its modes stay',
  async () => {
    const directory = await createDirectory(0o700);
    const dataDir = join(directory, '.data');
    const systemDir = await createDirectory();
    const all = await Promise.all([
      openInOther(installation, dataDir, { systemDir }),
      openInOther(installation, dataDir, { systemDir, mode: 'shared' }),
    ]);
    expect(all.map(({ created }) => created).sort()).toEqual([false, true]);
    expect(dirname(await realpath(join(dataDir, 'postgres')))).toBe(systemDir);
    for (const { end } of all) await end('release');
    const later = await open(dataDir);
    expect(later).toMatchObject({ url: all[0]?.url, created: false });
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
  },
);
