import { chmod, mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Where root keeps what another account has to reach and cannot reach in its own place. */
export const SHARED_FOLDER = '/var/lib/animal-store';

const ABANDONED_MS = 3_600_000;

/** Makes a folder with exactly this mode whatever the umask; leaves one that exists as it is. */
export async function makeFolder(path: string, mode: number): Promise<void> {
  const made = await mkdir(path, { recursive: true, mode });
  if (made !== undefined) await chmod(path, mode);
}

/**
 * Makes a folder with a name of its own, only its owner's, for what is renamed when it is complete. Those of the same
 * kind that processes which crashed left behind are removed, an hour later at the earliest.
 */
export async function makeTemporary(parent: string, kind: string): Promise<string> {
  const prefix = `${kind}.new-`;
  for (const name of await readdir(parent)) {
    const path = join(parent, name);
    if (!name.startsWith(prefix)) continue;
    const made = await stat(path).catch(() => undefined);
    if (made && Date.now() - made.mtimeMs > ABANDONED_MS) await rm(path, { recursive: true, force: true });
  }
  return mkdtemp(join(parent, prefix));
}
