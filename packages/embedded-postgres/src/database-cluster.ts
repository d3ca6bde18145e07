import { randomBytes, randomUUID } from 'node:crypto';
import { chown, readFile, readlink, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { getuid } from 'node:process';
import { type Account, canEnter, run, selectAccount } from './account.js';
import { type Binaries, findBinaries } from './binaries.js';
import { createAtomically, createDirectory, isMissing } from './directory.js';
import { EmbeddedPostgresError, findRemedy, toMessage } from './error.js';

export interface ClusterOptions {
  readonly dataDir: string;
  readonly database: string;
  readonly systemDir: string;
}

/** PostgreSQL's files in one data directory, and the account and programs that run them. */
export interface Cluster {
  /** An absolute path */
  readonly dataDir: string;
  /** The real path of the directory with `data/`, `password` and `server.log` */
  readonly directory: string;
  /** The name of the database, and of the role that owns everything in the cluster */
  readonly database: string;
  readonly password: string;
  readonly account: Account | undefined;
  readonly binaries: Binaries;
  /** Whether this call created the cluster */
  readonly created: boolean;
}

interface NewCluster {
  readonly database: string;
  readonly account: Account | undefined;
  readonly binaries: Binaries;
}

const SETTINGS = [
  'max_connections=100',
  'shared_buffers=32MB',
  'log_checkpoints=off',
  'log_min_messages=log',
];
const LOCALE = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'];

/**
 * Opens the cluster in `<dataDir>/postgres`, or creates it. When several processes create it at the same time, one
 * succeeds and the others open what it created.
 *
 * @throws EmbeddedPostgresError when the data directory or PostgreSQL's programs cannot be used
 */
export async function openCluster(options: ClusterOptions): Promise<Cluster> {
  const dataDir = resolve(options.dataDir);
  try {
    return await openOrCreate({ ...options, dataDir });
  } catch (cause) {
    if (cause instanceof EmbeddedPostgresError) throw cause;
    const remedies = [findRemedy(cause), 'choose another data directory'].filter(Boolean).join(' or ');
    throw new EmbeddedPostgresError(
      'DATA_DIR_UNUSABLE',
      `${dataDir} cannot hold a database (${toMessage(cause)}): ${remedies}.`,
      { cause },
    );
  }
}

async function openOrCreate(options: ClusterOptions): Promise<Cluster> {
  const { dataDir, database, systemDir } = options;
  const path = join(dataDir, 'postgres');
  // PostgreSQL's account needs to pass through a directory that root creates, but not to list it.
  await createDirectory(dataDir, getuid?.() === 0 ? 0o711 : 0o700);
  const directory = await find(path);
  const account = await selectAccount(directory);
  const binaries = await findBinaries(account, systemDir);
  if (directory === undefined) {
    const created = await create(path, systemDir, { database, account, binaries });
    return { ...(await openOrCreate(options)), created };
  }
  const password = (await readFile(join(directory, 'password'), 'utf8')).trim();
  return { dataDir, directory, database, password, account, binaries, created: false };
}

async function find(path: string): Promise<string | undefined> {
  // Read before the check, so that a link created in between does not look as if its target had gone.
  const target = await readlink(path).catch(() => undefined);
  if (await isMissing(path)) {
    if (target === undefined) return undefined;
    throw new EmbeddedPostgresError(
      'DATA_DIR_UNUSABLE',
      `${path} points to ${target}, which is gone: restore that directory or, to start with an empty database, remove the link.`,
    );
  }
  const directory = await realpath(path);
  if (await isMissing(join(directory, 'password'))) {
    throw new EmbeddedPostgresError(
      'DATA_DIR_UNUSABLE',
      `${directory} was not created as an embedded database: move it elsewhere or choose another data directory.`,
    );
  }
  return directory;
}

/**
 * Creates the cluster at `path` or, where PostgreSQL's account cannot reach that, in `systemDir` with a link to it.
 *
 * @returns false when another process created one first
 */
async function create(path: string, systemDir: string, cluster: NewCluster): Promise<boolean> {
  const fill = (temporary: string) => initialize(temporary, cluster);
  if (!cluster.account || (await canEnter(cluster.account, dirname(path))))
    return createAtomically(path, fill);
  const directory = join(systemDir, randomUUID());
  await createDirectory(systemDir, 0o755);
  await createAtomically(directory, fill);
  try {
    await symlink(directory, path);
    return true;
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    if (await isMissing(path)) throw error;
    return false;
  }
}

async function initialize(cwd: string, { database, account, binaries }: NewCluster): Promise<void> {
  const passwordFile = join(cwd, 'password');
  await writeFile(passwordFile, `${randomBytes(24).toString('hex')}\n`, { mode: 0o600, flag: 'wx' });
  if (account) {
    await chown(passwordFile, account.uid, account.gid);
    await chown(cwd, account.uid, account.gid);
  }
  const access = ['--username', database, '--pwfile=password', '--auth=scram-sha-256'];
  const settings = SETTINGS.flatMap((setting) => ['--set', setting]);
  await run(binaries.initdb, ['-D', 'data', '--no-instructions', ...access, ...LOCALE, ...settings], {
    account,
    cwd,
  });
  const input = `CREATE DATABASE "${database}"\n`;
  await run(binaries.postgres, ['--single', '-c', 'exit_on_error=on', '-D', 'data', 'postgres'], {
    account,
    cwd,
    input,
  });
}
