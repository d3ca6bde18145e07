import { once } from 'node:events';
import { mkdir, rm, stat, statfs, symlink, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { canMount, createDirectory, isRunning, mountFileSystem, newDataDir, open, query } from './support.js';

test('the first start creates an empty UTF-8 database whose files only its owner can read', async () => {
  const dataDir = await newDataDir();
  const { url, created } = await open(dataDir);
  expect(created).toBe(true);
  expect(
    await query(
      url,
      `SELECT current_database() AS name, upper('ö') AS upper, current_setting('fsync') AS fsync`,
    ),
  ).toEqual({ name: 'shop', upper: 'Ö', fsync: 'on' });
  for (const name of ['', 'data', 'password']) {
    expect((await stat(join(dataDir, 'postgres', name))).mode & 0o077, name).toBe(0);
  }
  expect((await stat(dataDir)).mode & 0o066).toBe(0);
});

test('a later start has the same data at the same address', async () => {
  const dataDir = await newDataDir();
  const first = await open(dataDir);
  await query(first.url, 'CREATE TABLE item AS SELECT 7 AS id');
  await first.release();
  expect(isRunning(dataDir)).toBe(false);
  const later = await open(dataDir);
  expect(later).toMatchObject({ url: first.url, created: false });
  expect(await query(later.url, 'SELECT id FROM item')).toEqual({ id: 7 });
});

test('a later start uses another port when its previous one is in use', async () => {
  const dataDir = await newDataDir();
  const first = await open(dataDir);
  await first.release();
  const other = createServer().listen(Number(new URL(first.url).port), '127.0.0.1');
  await once(other, 'listening');
  const later = await open(dataDir);
  other.close();
  expect(later.url).not.toBe(first.url);
  expect(await query(later.url, 'SELECT 1 AS one')).toEqual({ one: 1 });
});

test('PostgreSQL requires the password and listens on 127.0.0.1 only', async () => {
  const { url } = await open(await newDataDir());
  const wrong = new URL(url);
  wrong.password = 'wrong';
  await expect(query(wrong.href, 'SELECT 1')).rejects.toMatchObject({ code: '28P01' });
  const addresses = Object.values(networkInterfaces()).flatMap((list) =>
    (list ?? []).map(({ address }) => address),
  );
  for (const host of [...addresses, '::1', '127.0.0.2']) {
    if (host === '127.0.0.1') continue;
    const [error] = await once(connect({ host, port: Number(wrong.port) }), 'error').catch((cause) => [
      cause,
    ]);
    expect(error, host).toBeInstanceOf(Error);
  }
  expect(await query(url, `SELECT current_setting('unix_socket_directories') AS sockets`)).toEqual({
    sockets: '',
  });
});

test('two data directories are two databases, whatever their names, absolute or relative', async () => {
  const one = join(await createDirectory(), `Čerti a "psi" $HOME 'ž' 動物`);
  const two = relative(process.cwd(), await newDataDir());
  const urls = [(await open(one)).url, (await open(two)).url];
  for (const [index, url] of urls.entries()) await query(url, `CREATE TABLE item AS SELECT ${index} AS id`);
  expect(await Promise.all(urls.map((url) => query(url, 'SELECT id FROM item')))).toEqual([
    { id: 0 },
    { id: 1 },
  ]);
});

test('a data directory that cannot be used is rejected with what to do', async () => {
  const directory = await createDirectory();
  await mkdir(join(directory, 'other/postgres'), { recursive: true });
  await expect(open(join(directory, 'other'))).rejects.toThrow(
    /not created as an embedded database: move it elsewhere/,
  );
  await mkdir(join(directory, 'dangling'));
  await symlink(join(directory, 'gone'), join(directory, 'dangling/postgres'));
  await expect(open(join(directory, 'dangling'))).rejects.toThrow(/which is gone: restore that directory/);
  await writeFile(join(directory, 'file'), '');
  for (const dataDir of [join(directory, 'file'), '/proc/data']) {
    const attempt = open(dataDir);
    await expect(attempt).rejects.toMatchObject({ code: 'DATA_DIR_UNUSABLE' });
    await expect(attempt).rejects.toThrow(/^[^\n]* cannot hold a database \(E[^\n]*\): choose another/);
  }
});

test.runIf(canMount)(
  'a full disk is named as the reason, with what to do, however much fits on it',
  async () => {
    for (const size of ['16k', '8m', '24m', '32m', '40m']) {
      const directory = await createDirectory();
      mountFileSystem(directory, `size=${size}`);
      await expect(open(directory), size).rejects.toThrow(
        /^\S+ cannot hold a database \((?:initdb|postgres) failed: [^\n]*(?:No space left on device|wrote only)[^\n]*\): free some disk space or choose another data directory\.$/,
      );
    }
  },
);

test.runIf(canMount)(
  'an existing database whose disk is full or read-only is rejected with what to do',
  async () => {
    const directory = await createDirectory();
    const remount = mountFileSystem(directory, 'size=100m');
    await (await open(directory)).release();
    const { bavail, bsize } = await statfs(directory);
    await writeFile(join(directory, 'filler'), Buffer.alloc(bavail * bsize));
    await expect(open(directory)).rejects.toThrow(
      /^PostgreSQL in \S+ cannot be used \([^\n]*No space left on device\): free some disk space\.$/,
    );
    await rm(join(directory, 'filler'));
    remount('ro');
    await expect(open(directory)).rejects.toThrow(
      /^PostgreSQL in \S+ cannot be used \([^\n]*Read-only file system\): make its file system writable\.$/,
    );
    await expect(open(join(directory, 'new'))).rejects.toThrow(
      /^\S+ cannot hold a database \(EROFS: [^\n]*\): make its file system writable or choose another data directory\.$/,
    );
  },
);

test.each(['Shop', 'my-shop', 'pg_shop', 'postgres', 'x"; DROP DATABASE y'])(
  'the database name %s is rejected',
  async (database) => {
    await expect(open(await newDataDir(), { database })).rejects.toThrow(TypeError);
  },
);

test('the database name may be an SQL keyword', async () => {
  const { url } = await open(await newDataDir(), { database: 'user' });
  expect(await query(url, 'SELECT current_database() AS name')).toEqual({ name: 'user' });
});
