import { execFile } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { getuid } from 'node:process';
import { EmbeddedPostgresError, findErrorLine } from './error.js';

/** The operating system account that runs PostgreSQL and owns its files. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

interface RunOptions {
  /** Undefined: the caller's own */
  readonly account?: Account | undefined;
  readonly cwd?: string;
  readonly input?: string;
}

/**
 * PostgreSQL inherits nothing from the caller's environment: neither secrets nor PG* variables that change what its
 * programs do. TZ saves initdb the search for the machine's time zone.
 */
const ENVIRONMENT = { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };

/** Runs a program and returns its standard output. If it fails, the error contains what it reported. */
export function run(program: string, args: string[], options: RunOptions = {}): Promise<string> {
  const { account, cwd = '/', input = '' } = options;
  return new Promise((resolve, reject) => {
    const fail = (reason: string, cause: unknown) =>
      reject(new Error(`${basename(program)} failed: ${reason}`, { cause }));
    try {
      const child = execFile(
        program,
        args,
        { ...account, cwd, env: ENVIRONMENT },
        (error, stdout, stderr) => {
          if (error) fail(findErrorLine(stderr) || error.message, error);
          else resolve(stdout);
        },
      );
      // A program that exits before it has read its input reports that through its exit status.
      child.stdin?.on('error', () => {});
      child.stdin?.end(input);
    } catch (error) {
      // Some containers do not let root switch to another user.
      fail(`this process may not run programs as uid ${account?.uid}`, error);
    }
  });
}

/** Whether the account may enter the directory. Only the kernel knows: modes say nothing about ACLs and mounts. */
export async function canEnter(account: Account, directory: string): Promise<boolean> {
  return run('test', ['-x', directory], { account }).then(
    () => true,
    () => false,
  );
}

/**
 * Selects the account that runs PostgreSQL: undefined, the caller's own, for an ordinary user. PostgreSQL refuses to
 * run as root, so root uses the owner of the existing database, else `postgres`, else `nobody`.
 *
 * @throws EmbeddedPostgresError when the caller may not run the existing database
 */
export async function selectAccount(existing: string | undefined): Promise<Account | undefined> {
  const owner = existing === undefined ? undefined : await stat(existing);
  const uid = getuid?.();
  if (uid === 0) return owner ? ownerForRoot(owner, existing) : defaultForRoot();
  if (owner === undefined || owner.uid === uid) return undefined;
  throw new EmbeddedPostgresError(
    'DATA_DIR_UNUSABLE',
    `${existing} belongs to another user (uid ${owner.uid}): run as that user or choose another data directory.`,
  );
}

function ownerForRoot({ uid, gid }: Account, existing: string | undefined): Account {
  if (uid !== 0) return { uid, gid };
  throw new EmbeddedPostgresError(
    'DATA_DIR_UNUSABLE',
    `${existing} belongs to root, and PostgreSQL refuses to run as root: give it to another account with chown -R.`,
  );
}

async function defaultForRoot(): Promise<Account> {
  const account = (await findAccount('postgres')) ?? (await findAccount('nobody'));
  if (account) return account;
  throw new EmbeddedPostgresError(
    'CANNOT_RUN',
    'PostgreSQL refuses to run as root, and this machine has neither an account `postgres` nor `nobody`: run as an ordinary user.',
  );
}

async function findAccount(name: string): Promise<Account | undefined> {
  try {
    const [uid, gid] = await Promise.all(['-u', '-g'].map((flag) => run('id', [flag, name])));
    return { uid: Number(uid), gid: Number(gid) };
  } catch {
    return undefined;
  }
}
