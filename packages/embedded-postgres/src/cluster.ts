import { randomBytes, randomUUID } from 'node:crypto';
import { chown, readFile, readlink, realpath, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { getuid } from 'node:process';
import { type Account, accountFor, canEnter, run } from './account.js';
import { type Binaries, findBinaries } from './binaries.js';
import { EmbeddedError } from './error.js';
import { makeFolder, makeTemporary, SHARED_FOLDER } from './folder.js';

/** The role that owns everything in the cluster, and the name of the service's database. */
export const ROLE = 'animal_store';

/** PostgreSQL's files of one DATA_DIR, and what runs them. */
export interface Cluster {
  /** absolute; for messages */
  readonly dataDir: string;
  /** real path; holds `data/`, `password` and `server.log` */
  readonly folder: string;
  readonly password: string;
  readonly account: Account | undefined;
  readonly binaries: Binaries;
  /** true when this call made it */
  readonly created: boolean;
}

/**
 * Finds the cluster in `DATA_DIR/postgres`, or makes it when there is none. It appears there whole, in one step: a
 * crash in the middle leaves nothing behind that a later start takes for a cluster, and of two processes that make
 * one at the same time the second uses the first one's.
 *
 * @throws EmbeddedError when the folder is not this user's or holds something else.
 */
export async function openCluster(dataDir: string): Promise<Cluster> {
  const place = resolve(dataDir, 'postgres');
  // PostgreSQL's account has to pass through a folder of root's, which it may not list.
  await makeFolder(dirname(place), getuid?.() === 0 ? 0o711 : 0o700);
  const folder = await find(place);
  const account = await accountFor(folder === undefined ? undefined : await stat(folder));
  const binaries = await findBinaries(account);
  if (folder === undefined) {
    const created = await create(place, account, binaries);
    return { ...(await openCluster(dataDir)), created };
  }
  const password = (await readFile(join(folder, 'password'), 'utf8')).trim();
  return { dataDir: dirname(place), folder, password, account, binaries, created: false };
}

async function find(place: string): Promise<string | undefined> {
  if (await isMissing(place)) {
    const target = await readlink(place).catch(() => undefined);
    // A link that has come since `place` was missing points to a whole cluster.
    if (target === undefined || !(await isMissing(target))) return target;
    throw new EmbeddedError(
      `${place} points to ${target}, which is gone: bring that folder back or, to start with an empty database, remove the link.`,
    );
  }
  const folder = await realpath(place);
  if (await isMissing(join(folder, 'password'))) {
    throw new EmbeddedError(
      `${folder} is not a database of this service: move it away or choose another DATA_DIR.`,
    );
  }
  return folder;
}

/** False as well when the caller may not know: whose the folder is says more then. */
async function isMissing(path: string): Promise<boolean> {
  return stat(path).then(
    () => false,
    (error) => hasCode(error, 'ENOENT'),
  );
}

async function create(place: string, account: Account | undefined, binaries: Binaries): Promise<boolean> {
  const reachable = account === undefined || (await canEnter(account, dirname(place)));
  const folder = reachable ? place : join(SHARED_FOLDER, randomUUID());
  if (!reachable) await makeFolder(SHARED_FOLDER, 0o755);
  const unfinished = await makeTemporary(dirname(folder), 'postgres');
  try {
    await initialise(unfinished, account, binaries);
    await rename(unfinished, folder);
    if (!reachable) await symlink(folder, place);
    return true;
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    // Elsewhere it is this call's own, and nothing points to it.
    if (!reachable) await rm(folder, { recursive: true, force: true });
    const lostTheRace = ['EEXIST', 'ENOTEMPTY', 'ENOTDIR'].some((code) => hasCode(error, code));
    if (lostTheRace) return false;
    throw error;
  }
}

async function initialise(
  cwd: string,
  account: Account | undefined,
  { initdb, postgres }: Binaries,
): Promise<void> {
  const passwordFile = join(cwd, 'password');
  await writeFile(passwordFile, `${randomBytes(24).toString('hex')}\n`, { mode: 0o600, flag: 'wx' });
  if (account) {
    await chown(passwordFile, account.uid, account.gid);
    await chown(cwd, account.uid, account.gid);
  }
  const settings = [
    'max_connections=100',
    'shared_buffers=32MB',
    'log_checkpoints=off',
    'log_min_messages=log',
  ];
  const access = ['--username', ROLE, '--pwfile=password', '--auth=scram-sha-256'];
  const text = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'];
  const options = [...access, ...text, ...settings.flatMap((setting) => ['--set', setting])];
  await run(initdb, ['-D', 'data', '--no-instructions', ...options], { account, cwd });
  const input = `CREATE DATABASE ${ROLE}\n`;
  await run(postgres, ['--single', '-c', 'exit_on_error=on', '-D', 'data', 'postgres'], {
    account,
    cwd,
    input,
  });
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
