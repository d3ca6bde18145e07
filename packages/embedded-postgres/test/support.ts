import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmdirSync } from 'node:fs';
import { chmod, cp, mkdtemp, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { Client } from 'pg';
import { build } from 'vite';
import { expect, onTestFinished, vi } from 'vitest';
import {
  createEmbeddedPostgres,
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
} from '../src/embedded-postgres.js';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

export const isRoot = process.getuid?.() === 0;
export const NOBODY = 65_534;
export const BINARIES = `@embedded-postgres/${process.platform}-${process.arch}`;

/** Stops the servers that still run on clusters below the directory, and removes it. */
async function removeWithServers(directory: string): Promise<void> {
  for (const name of await readdir(directory, { recursive: true })) {
    if (!name.endsWith(join('data', 'postmaster.pid'))) continue;
    const lockFile = join(directory, name);
    process.kill(Number(readFileSync(lockFile, 'utf8').split('\n')[0]), 'SIGQUIT');
    await vi.waitFor(() => expect(existsSync(lockFile)).toBe(false), 20_000);
  }
  // The children of a start that was killed may still be writing.
  await rm(directory, { recursive: true, maxRetries: 50, retryDelay: 100 });
}

/** A directory that is removed after the test. */
export async function createDirectory(mode = 0o755): Promise<string> {
  const directory = await createTemporary(mode);
  onTestFinished(() => removeWithServers(directory));
  return directory;
}

async function createTemporary(mode: number): Promise<string> {
  const directory = await mkdtemp(join(await realpath(tmpdir()), 'embedded-'));
  await chmod(directory, mode);
  return directory;
}

/** Whether this process may mount file systems: only root may, and not in every container. */
export const canMount = isRoot && tryToMount();

function tryToMount(): boolean {
  const directory = mkdtempSync(join(tmpdir(), 'embedded-'));
  const result = spawnSync('mount', ['-t', 'tmpfs', 'tmpfs', directory]);
  if (result.status === 0) execFileSync('umount', [directory]);
  rmdirSync(directory);
  return result.status === 0;
}

/** Mounts an empty file system until the end of the test, and returns how to mount it anew with other options. */
export function mountFileSystem(directory: string, options: string): (options: string) => void {
  execFileSync('mount', ['-t', 'tmpfs', '-o', `mode=711,${options}`, 'tmpfs', directory]);
  onTestFinished(() => void execFileSync('umount', [directory]));
  return (changes) => void execFileSync('mount', ['-o', `remount,${changes}`, directory]);
}

export async function newDataDir(): Promise<string> {
  return join(await createDirectory(), '.data');
}

/** Opens a database in this process until the end of the test. */
export async function open(
  dataDir: string,
  options: Partial<EmbeddedPostgresOptions> = {},
): Promise<EmbeddedPostgres> {
  const postgres = await createEmbeddedPostgres({ dataDir, database: 'shop', mode: 'exclusive', ...options });
  onTestFinished(() => postgres.release());
  return postgres;
}

/** The package as npm installs it, with PostgreSQL, for other processes to load. The caller removes the directory. */
export async function createInstallation(): Promise<string> {
  const directory = await createTemporary(0o755);
  await build({
    root: dirname(import.meta.dirname),
    configFile: false,
    logLevel: 'warn',
    ssr: { noExternal: true },
    build: { ssr: 'src/embedded-postgres.ts', outDir: directory, emptyOutDir: true },
  });
  await writeFile(join(directory, 'package.json'), '{"type":"module"}');
  const { postgres }: { postgres: string } = await import(BINARIES);
  const from = join(dirname(postgres), '../..');
  await cp(from, join(directory, 'node_modules', BINARIES), { recursive: true, verbatimSymlinks: true });
  execFileSync('chmod', ['-R', 'a+rX', directory]);
  return directory;
}

/** Becomes another user only after Node.js has loaded, because that user may not be able to read Node.js. */
const OTHER_PROCESS = `
  import { createInterface } from 'node:readline';
  const [module, options, uid] = process.argv.slice(1);
  if (uid) { process.setgroups([]); process.setgid(Number(uid)); process.setuid(Number(uid)); }
  process.on('SIGINT', () => console.log('{"interrupted":true}'));
  const { createEmbeddedPostgres } = await import(module);
  const postgres = await createEmbeddedPostgres(JSON.parse(options)).catch((error) => {
    console.log(JSON.stringify({ error: error.code + ' ' + error.message }));
    process.exit(1);
  });
  console.log(JSON.stringify({ url: postgres.url, created: postgres.created }));
  for await (const _ of createInterface(process.stdin)) break;
  await postgres.release();
  process.exit(0);
`;

interface OtherOptions extends Partial<EmbeddedPostgresOptions> {
  readonly uid?: number;
}

/** Starts another process that opens the database, prints the result, and keeps it open until it reads a line. */
export function spawnOther(installation: string, dataDir: string, { uid, ...options }: OtherOptions = {}) {
  const module = pathToFileURL(join(installation, 'embedded-postgres.js')).href;
  const json = JSON.stringify({ dataDir, database: 'shop', mode: 'exclusive', ...options });
  const args = ['--input-type=module', '-e', OTHER_PROCESS, module, json, ...(uid ? [String(uid)] : [])];
  const child = spawn(process.execPath, args, {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  return { child, next: async () => JSON.parse((await lines.next()).value) };
}

export async function openInOther(installation: string, dataDir: string, options?: OtherOptions) {
  const { child, next } = spawnOther(installation, dataDir, options);
  const result: { url: string; created: boolean; error?: string } = await next();
  const end = async (how: 'release' | 'SIGKILL') => {
    if (how === 'release') child.stdin.write('\n');
    else child.kill(how);
    await once(child, 'exit');
  };
  return { ...result, pid: child.pid ?? 0, next, end };
}

export async function query(url: string, sql: string): Promise<Record<string, unknown>> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 5000 });
  client.on('error', () => {});
  try {
    await client.connect();
    return (await client.query(sql)).rows[0] ?? {};
  } finally {
    await client.end();
  }
}

export const readStartTime = async (url: string) =>
  String((await query(url, 'SELECT pg_postmaster_start_time()::text AS at')).at);
export const lockFile = (dataDir: string) => join(dataDir, 'postgres/data/postmaster.pid');
export const readServerPid = (dataDir: string) =>
  Number(readFileSync(lockFile(dataDir), 'utf8').split('\n')[0]);
export const isRunning = (dataDir: string) => existsSync(lockFile(dataDir));
