import { execFile } from 'node:child_process';
import { getuid } from 'node:process';
import { EmbeddedError } from './error.js';

/** The operating system's account that runs PostgreSQL and owns its files. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

interface RunOptions {
  readonly account?: Account | undefined;
  readonly cwd?: string;
  readonly input?: string;
}

// Nothing of the service's environment reaches PostgreSQL: neither its secrets nor PG* variables that would change
// what the tools do. TZ spares initdb the search for the machine's time zone.
const env = { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };

/**
 * Runs a program as the account, or as the caller when there is none, and answers its standard output.
 *
 * @throws EmbeddedError with the program's last words when it fails or cannot be started.
 */
export function run(program: string, args: string[], options: RunOptions = {}): Promise<string> {
  const { account, cwd = '/', input = '' } = options;
  return new Promise((resolve, reject) => {
    const fail = (reason: string, cause: unknown) =>
      reject(new EmbeddedError(`${program} failed: ${reason}`, { cause }));
    try {
      const child = execFile(program, args, { ...account, cwd, env }, (error, stdout, stderr) => {
        if (error) fail(stderr.trim().split('\n').slice(-3).join(' ') || error.message, error);
        else resolve(stdout);
      });
      // A program that ends before it has read everything is reported by its exit status.
      child.stdin?.on('error', () => {});
      child.stdin?.end(input);
    } catch (error) {
      // Thrown where containers take from root the right to act as another user.
      fail(`this process may not act as uid ${account?.uid}`, error);
    }
  });
}

/** Whether the account may enter the folder: asked of the kernel, as modes alone do not tell (ACLs, mounts). */
export async function canEnter(account: Account, folder: string): Promise<boolean> {
  try {
    await run('/bin/sh', ['-c', 'cd -- "$1"', 'sh', folder], { account });
    return true;
  } catch {
    return false;
  }
}

/**
 * The account that PostgreSQL has to run as: none (the caller itself) for an ordinary user. PostgreSQL refuses to run
 * as root, so root gets the owner of the existing cluster, else `postgres`, else `nobody`.
 *
 * @throws EmbeddedError when the cluster belongs to somebody the caller cannot become.
 */
export async function accountFor(owner: Account | undefined): Promise<Account | undefined> {
  const uid = getuid?.();
  if (owner && uid !== 0 && owner.uid !== uid) {
    throw new EmbeddedError(
      `The database in DATA_DIR belongs to another user (uid ${owner.uid}): run as that user or choose another DATA_DIR.`,
    );
  }
  if (uid !== 0) return undefined;
  if (owner?.uid === 0) {
    throw new EmbeddedError(
      'The database in DATA_DIR belongs to root, as whom PostgreSQL refuses to run: give it to another account with chown -R.',
    );
  }
  return owner ?? (await named('postgres')) ?? (await named('nobody')) ?? noAccount();
}

async function named(name: string): Promise<Account | undefined> {
  try {
    const [uid, gid] = await Promise.all(['-u', '-g'].map((flag) => run('id', [flag, name])));
    return { uid: Number(uid), gid: Number(gid) };
  } catch {
    return undefined;
  }
}

function noAccount(): never {
  throw new EmbeddedError(
    'PostgreSQL refuses to run as root and there is no account `postgres` or `nobody` to run it: start as an ordinary user or set DATABASE_URL.',
  );
}
