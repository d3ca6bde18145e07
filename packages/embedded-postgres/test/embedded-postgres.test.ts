import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import {
  chmod,
  chown,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { createServer, connect as dial } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { type EmbeddedPostgres, openEmbedded } from '../src/embedded-postgres.js';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 30_000 });

const asRoot = process.getuid?.() === 0;
const NOBODY = 65_534;
const PACKAGE = `@embedded-postgres/${process.platform}-${process.arch}`;
const project = dirname(import.meta.dirname); // the package
const folders: string[] = [];
const holds: EmbeddedPostgres[] = [];
const children: ChildProcess[] = [];

afterEach(async () => {
  await Promise.all(holds.splice(0).map((hold) => hold.release()));
  for (const child of children.splice(0)) child.kill('SIGKILL');
  for (const folder of folders.splice(0)) await removeWithServers(folder);
});

/** Ends what still runs on the clusters below the folder, and removes it with what root keeps elsewhere for it. */
async function removeWithServers(folder: string): Promise<void> {
  for (const name of await readdir(folder, { recursive: true })) {
    if (!name.endsWith('postgres') || !existsSync(join(folder, name, 'data/PG_VERSION'))) continue;
    const cluster = await realpath(join(folder, name));
    const lock = join(cluster, 'data/postmaster.pid');
    if (existsSync(lock)) process.kill(Number(readFileSync(lock, 'utf8').split('\n')[0]), 'SIGQUIT');
    await vi.waitFor(() => expect(existsSync(lock)).toBe(false), 10_000);
    await rm(cluster, { recursive: true });
  }
  // What a killed start has begun may still be at work.
  await rm(folder, { recursive: true, maxRetries: 50, retryDelay: 100 });
}

async function newFolder(mode = 0o755): Promise<string> {
  const folder = await mkdtemp(join(await realpath(tmpdir()), 'embedded-'));
  folders.push(folder);
  await chmod(folder, mode);
  return folder;
}

async function newDataDir(): Promise<string> {
  return join(await newFolder(), '.data');
}

async function open(dataDir: string, role: 'service' | 'guest' = 'service', onFault = (_: Error) => {}) {
  const hold = await openEmbedded({ dataDir, role, log: () => {}, onFault });
  holds.push(hold);
  return hold;
}

// Becomes another user after Node.js has loaded, which that user may not be able to read.
const HOLDER = `
  import { createInterface } from 'node:readline';
  const [module, dataDir, role, uid] = process.argv.slice(1);
  if (uid) { process.setgroups([]); process.setgid(Number(uid)); process.setuid(Number(uid)); }
  process.on('SIGINT', () => console.log('{"interrupted":true}'));
  const { openEmbedded } = await import(module);
  const hold = await openEmbedded({ dataDir, role, log() {} }).catch((error) => {
    console.log(JSON.stringify({ refused: error.name + ': ' + error.message }));
    process.exit(1);
  });
  console.log(JSON.stringify({ url: hold.url, created: hold.created }));
  for await (const _ of createInterface(process.stdin)) break;
  await hold.release();
  process.exit(0);
`;

interface HolderOptions {
  readonly role?: 'service' | 'guest';
  readonly uid?: number;
  readonly installation?: string;
}

/** Another process that opens the database, says so in a line, and holds it until it reads one. */
function spawnHolder(dataDir: string, { role = 'service', uid, installation = project }: HolderOptions = {}) {
  const module = pathToFileURL(join(installation, 'dist/database/embedded.js')).href;
  const args = ['--input-type=module', '-e', HOLDER, module, dataDir, role, ...(uid ? [String(uid)] : [])];
  const child = spawn(process.execPath, args, {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  children.push(child);
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  return { child, next: async () => JSON.parse((await lines.next()).value) };
}

async function holder(dataDir: string, options: HolderOptions = {}) {
  const { child, next } = spawnHolder(dataDir, options);
  const said: { url: string; created: boolean; refused?: string } = await next();
  const end = async (how: 'release' | 'SIGKILL') => {
    if (how === 'release') child.stdin.write('\n');
    else child.kill(how);
    await once(child, 'exit');
  };
  return { ...said, pid: child.pid ?? 0, next, end };
}

async function query(url: string, sql: string): Promise<Record<string, unknown>> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 5000 });
  client.on('error', () => {});
  try {
    await client.connect();
    return (await client.query(sql)).rows[0] ?? {};
  } finally {
    await client.end();
  }
}

const startOf = async (url: string) =>
  String((await query(url, 'SELECT pg_postmaster_start_time()::text AS at')).at);
const serverPid = (dataDir: string) => Number(readFileSync(lockFile(dataDir), 'utf8').split('\n')[0]);
const lockFile = (dataDir: string) => join(dataDir, 'postgres/data/postmaster.pid');
const runs = (dataDir: string) => existsSync(lockFile(dataDir));

describe('one process', () => {
  test('the first start makes an empty UTF-8 database whose files only its owner can read', async () => {
    const dataDir = await newDataDir();
    const { url, created } = await open(dataDir);
    expect(created).toBe(true);
    expect(
      await query(
        url,
        `SELECT current_database() AS name, upper('ö') AS upper, current_setting('fsync') AS fsync`,
      ),
    ).toEqual({
      name: 'animal_store',
      upper: 'Ö',
      fsync: 'on',
    });
    for (const name of ['', 'data', 'password']) {
      expect((await stat(join(dataDir, 'postgres', name))).mode & 0o077, name).toBe(0);
    }
    expect((await stat(dataDir)).mode & 0o066).toBe(0);
  });

  test('a later start has the same data on the same address', async () => {
    const dataDir = await newDataDir();
    const first = await open(dataDir);
    await query(first.url, 'CREATE TABLE animal AS SELECT 7 AS id');
    await first.release();
    expect(runs(dataDir)).toBe(false);
    const later = await open(dataDir);
    expect(later).toMatchObject({ url: first.url, created: false });
    expect(await query(later.url, 'SELECT id FROM animal')).toEqual({ id: 7 });
  });

  test('a port that was taken meanwhile is left to its taker', async () => {
    const dataDir = await newDataDir();
    const first = await open(dataDir);
    await first.release();
    const taker = createServer().listen(Number(new URL(first.url).port), '127.0.0.1');
    await once(taker, 'listening');
    const later = await open(dataDir);
    taker.close();
    expect(later.url).not.toBe(first.url);
    expect(await query(later.url, 'SELECT 1 AS one')).toEqual({ one: 1 });
  });

  test('only who knows the password gets in, and only on 127.0.0.1', async () => {
    const { url } = await open(await newDataDir());
    const wrong = new URL(url);
    wrong.password = 'wrong';
    await expect(query(wrong.href, 'SELECT 1')).rejects.toMatchObject({ code: '28P01' });
    const addresses = Object.values(networkInterfaces()).flatMap((list) =>
      (list ?? []).map(({ address }) => address),
    );
    for (const host of [...addresses, '::1', '127.0.0.2']) {
      if (host === '127.0.0.1') continue;
      const [error] = await once(dial({ host, port: Number(wrong.port) }), 'error').catch((cause) => [cause]);
      expect(error, host).toBeInstanceOf(Error);
    }
    expect(await query(url, `SELECT current_setting('unix_socket_directories') AS sockets`)).toEqual({
      sockets: '',
    });
  });

  test('two folders are two databases, whatever their names, absolute or relative', async () => {
    const one = join(await newFolder(), `Čerti a "psi" $HOME 'ž' 動物`);
    const two = relative(process.cwd(), await newDataDir());
    const urls = [(await open(one)).url, (await open(two)).url];
    for (const [index, url] of urls.entries())
      await query(url, `CREATE TABLE animal AS SELECT ${index} AS id`);
    expect(await Promise.all(urls.map((url) => query(url, 'SELECT id FROM animal')))).toEqual([
      { id: 0 },
      { id: 1 },
    ]);
  });

  test('a DATA_DIR that cannot be used is refused with what to do', async () => {
    const folder = await newFolder();
    await mkdir(join(folder, 'other/postgres'), { recursive: true });
    await expect(open(join(folder, 'other'))).rejects.toThrow(/not a database of this service: move it away/);
    await mkdir(join(folder, 'dangling'));
    await symlink(join(folder, 'gone'), join(folder, 'dangling/postgres'));
    await expect(open(join(folder, 'dangling'))).rejects.toThrow(/which is gone: bring that folder back/);
    await writeFile(join(folder, 'file'), '');
    await expect(open(join(folder, 'file'))).rejects.toThrow(/DATA_DIR .* cannot be used/);
  });
});

describe('death', () => {
  test('a first start that was killed in the middle leaves nothing that a later one takes for a database', async () => {
    const dataDir = await newDataDir();
    const { child } = spawnHolder(dataDir);
    await vi.waitFor(async () => expect(await readdir(dataDir)).toHaveLength(1), 10_000);
    child.kill('SIGKILL');
    expect(await readdir(dataDir)).not.toContain('postgres');
    expect(await open(dataDir)).toMatchObject({ created: true });
  });

  test('a server whose service was killed is adopted as it runs', async () => {
    const dataDir = await newDataDir();
    const killed = await holder(dataDir);
    const start = await startOf(killed.url);
    await killed.end('SIGKILL');
    const { url } = await open(dataDir);
    expect(url).toBe(killed.url);
    expect(await startOf(url)).toBe(start);
  });

  test('after PostgreSQL was killed it is back on the same address with what was committed', async () => {
    const dataDir = await newDataDir();
    const onFault = vi.fn();
    const { url } = await open(dataDir, 'service', onFault);
    await query(url, 'CREATE TABLE animal AS SELECT 7 AS id');
    const start = await startOf(url);
    process.kill(serverPid(dataDir), 'SIGKILL');
    await vi.waitFor(
      async () => expect(await query(url, 'SELECT id FROM animal')).toEqual({ id: 7 }),
      15_000,
    );
    expect(await startOf(url)).not.toBe(start);
    expect(onFault).toHaveBeenCalled();
    // The new server is held like the old one.
    await vi.waitFor(async () => expect((await holder(dataDir)).refused).toMatch(/Another service/), 15_000);
  });

  test('after one of its connections was killed the database serves again', async () => {
    const { url } = await open(await newDataDir());
    const { pid } = await query(url, `SELECT pid FROM pg_stat_activity WHERE datname = 'postgres'`);
    process.kill(Number(pid), 'SIGKILL');
    const held = `SELECT count(*)::int AS locks FROM pg_locks WHERE locktype = 'advisory' AND pid <> ${pid}`;
    await vi.waitFor(async () => expect(await query(url, held)).toEqual({ locks: 2 }), 15_000);
  });

  test('a lock file whose process number now belongs to another process does not keep it down', async () => {
    const dataDir = await newDataDir();
    const killed = await holder(dataDir);
    const { uid, gid } = await stat(join(dataDir, 'postgres'));
    const stranger = spawn('sleep', ['60'], asRoot ? { uid, gid } : {});
    children.push(stranger);
    await killed.end('SIGKILL');
    process.kill(serverPid(dataDir), 'SIGKILL');
    const lock = await readFile(lockFile(dataDir), 'utf8');
    await writeFile(lockFile(dataDir), lock.replace(/^\d+/, String(stranger.pid)));
    const { url } = await open(dataDir);
    expect(await query(url, 'SELECT 1 AS one')).toEqual({ one: 1 });
    expect(stranger.exitCode).toBeNull();
  });

  test('Ctrl-C in the terminal does not reach PostgreSQL', async () => {
    const dataDir = await newDataDir();
    const service = await holder(dataDir);
    const start = await startOf(service.url);
    process.kill(-service.pid, 'SIGINT');
    expect(await service.next()).toEqual({ interrupted: true });
    expect(await startOf(service.url)).toBe(start);
  });
});

describe('several processes', () => {
  test('a second service on the same DATA_DIR is refused', async () => {
    const dataDir = await newDataDir();
    await open(dataDir);
    const { refused } = await holder(dataDir);
    expect(refused).toBe(
      `EmbeddedError: Another service is running on DATA_DIR ${dataDir}: stop it, or give this one a DATA_DIR of its own.`,
    );
  });

  test('guests come and go beside a service, and the last to leave stops the server', async () => {
    const dataDir = await newDataDir();
    const service = await open(dataDir);
    const [one, two] = [await holder(dataDir, { role: 'guest' }), await holder(dataDir, { role: 'guest' })];
    expect([one.url, two.url]).toEqual([service.url, service.url]);
    await one.end('release');
    expect(await query(service.url, 'SELECT 1 AS one')).toEqual({ one: 1 });
    await service.release();
    expect(await query(two.url, 'SELECT 1 AS one')).toEqual({ one: 1 });
    await two.end('release');
    expect(runs(dataDir)).toBe(false);
  });

  test('of several that leave at once the last one stops the server', async () => {
    const dataDir = await newDataDir();
    const leaving = [await open(dataDir), await open(dataDir, 'guest'), await open(dataDir, 'guest')];
    await Promise.all(leaving.map((hold) => hold.release()));
    expect(runs(dataDir)).toBe(false);
  });

  test('who comes while the last one leaves gets a server that stays', async () => {
    const dataDir = await newDataDir();
    let current = await open(dataDir);
    for (let round = 0; round < 5; round++) {
      const [next] = await Promise.all([open(dataDir, 'guest'), current.release()]);
      expect(await query(next.url, 'SELECT 1 AS one')).toEqual({ one: 1 });
      current = next;
    }
  });

  test('of several that start at once on a new DATA_DIR one makes the database and all use it', async () => {
    const dataDir = await newDataDir();
    const all = await Promise.all([holder(dataDir), ...[1, 2].map(() => holder(dataDir, { role: 'guest' }))]);
    expect(all.filter(({ created }) => created)).toHaveLength(1);
    expect(new Set(all.map(({ url }) => url)).size).toBe(1);
    expect(await readdir(dataDir)).toEqual(['postgres']);
  });
});

describe('another installation', () => {
  let installation: string;
  const nativeLibraries = () => join(installation, 'node_modules', PACKAGE, 'native/lib');

  beforeAll(async () => {
    installation = await newFolder();
    folders.length = 0;
    await cp(join(project, 'dist/database'), join(installation, 'dist/database'), { recursive: true });
    await cp(join(project, 'dist/operator-error.js'), join(installation, 'dist/operator-error.js'));
    await writeFile(join(installation, 'package.json'), '{"type":"module"}');
    const names = new Set(['pg', PACKAGE]);
    for (const name of names) {
      const from = join(project, 'node_modules', name);
      await cp(from, join(installation, 'node_modules', name), { recursive: true });
      const { dependencies = {} } = JSON.parse(await readFile(join(from, 'package.json'), 'utf8'));
      for (const dependency of Object.keys(dependencies)) names.add(dependency);
    }
    execFileSync('chmod', ['-R', 'a+rX', installation]);
  });

  afterAll(() => rm(installation, { recursive: true }));

  /** As after `npm ci --ignore-scripts`, which makes no links. */
  beforeEach(async () => {
    await chmod(installation, 0o755);
    execFileSync('find', [nativeLibraries(), '-type', 'l', '-delete']);
    if (asRoot) await chown(nativeLibraries(), 0, 0);
  });

  test.runIf(asRoot)('serves root from a folder that only root may enter', async () => {
    await chmod(installation, 0o700);
    const { url } = await holder(join(await newFolder(0o700), '.data'), { installation });
    expect(await query(url, 'SELECT 1 AS one')).toEqual({ one: 1 });
    expect((await stat(installation)).mode & 0o777).toBe(0o700);
  });

  test('serves an ordinary user, and root as the account of that user', async () => {
    const folder = await newFolder();
    if (asRoot) for (const path of [folder, nativeLibraries()]) await chown(path, NOBODY, NOBODY);
    const dataDir = join(folder, '.data');
    const ordinary = await holder(dataDir, { installation, ...(asRoot && { uid: NOBODY }) });
    expect(ordinary).toMatchObject({ created: true });
    expect(await query(ordinary.url, 'SELECT 1 AS one')).toEqual({ one: 1 });
    await ordinary.end('release');
    const { url } = await open(dataDir);
    expect(url).toBe(ordinary.url);
    if (asRoot) expect((await stat(`/proc/${serverPid(dataDir)}`)).uid).toBe(NOBODY);
  });

  test.runIf(asRoot)('says so when links are missing that cannot be made', async () => {
    const folder = await newFolder(0o777);
    const { refused } = await holder(join(folder, '.data'), { installation, uid: NOBODY });
    expect(refused).toMatch(/lacks the link .*: run npm rebuild/);
  });

  test.runIf(asRoot)('refuses the DATA_DIR of somebody else', async () => {
    const dataDir = await newDataDir();
    const others = await open(dataDir);
    await others.release();
    const { refused } = await holder(dataDir, { installation, uid: NOBODY });
    expect(refused).toMatch(/belongs to another user .*: run as that user or choose another DATA_DIR/);
    const { refused: refusedNew } = await holder(join(dirname(dataDir), 'new'), {
      installation,
      uid: NOBODY,
    });
    expect(refusedNew).toMatch(/cannot be used .*: choose a folder of your own/);
  });
});

test.runIf(asRoot)('root can have DATA_DIR where only root may enter, and its modes stay', async () => {
  const folder = await newFolder(0o700);
  const dataDir = join(folder, '.data');
  const all = await Promise.all([holder(dataDir), holder(dataDir, { role: 'guest' })]);
  expect(all.map(({ created }) => created).sort()).toEqual([false, true]);
  expect(dirname(await realpath(join(dataDir, 'postgres')))).toBe('/var/lib/animal-store');
  for (const { end } of all) await end('release');
  const later = await open(dataDir);
  expect(later).toMatchObject({ url: all[0]?.url, created: false });
  expect((await stat(folder)).mode & 0o777).toBe(0o700);
});
