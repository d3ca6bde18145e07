import { chmod, mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const TEMPORARY_PREFIX = 'postgres.new-';

/** No directory takes this long to fill. */
const ABANDONED_AFTER_MS = 3_600_000;

/**
 * Creates a directory and its parents with exactly this mode, whatever the umask. Leaves existing ones as they are.
 * Node's recursive mkdir never returns where the parent exists but the kernel answers ENOENT, as below /proc.
 */
export async function createDirectory(path: string, mode: number): Promise<void> {
  if (!(await isMissing(path))) return;
  await createDirectory(dirname(path), mode);
  try {
    await mkdir(path, { mode });
    await chmod(path, mode);
  } catch (error) {
    // Another process may have created it first.
    if (await isMissing(path)) throw error;
  }
}

/**
 * Fills a temporary directory and moves it to `path` in one step, so that a crash never leaves half a directory there.
 *
 * @returns false when another process created `path` first
 */
export async function createAtomically(
  path: string,
  fill: (temporary: string) => Promise<void>,
): Promise<boolean> {
  await removeAbandoned(dirname(path));
  const temporary = await mkdtemp(join(dirname(path), TEMPORARY_PREFIX));
  try {
    await fill(temporary);
    await rename(temporary, path);
    return true;
  } catch (error) {
    await rm(temporary, { recursive: true, force: true });
    if (await isMissing(path)) throw error;
    return false;
  }
}

/** Whether a path is missing. False, too, when the caller lacks permission: using the path then gives a better error. */
export async function isMissing(path: string): Promise<boolean> {
  return stat(path).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === 'ENOENT',
  );
}

/** Removes directories that crashed processes left behind. */
async function removeAbandoned(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    if (!name.startsWith(TEMPORARY_PREFIX)) continue;
    const path = join(parent, name);
    const stats = await stat(path).catch(() => undefined);
    if (stats && Date.now() - stats.mtimeMs > ABANDONED_AFTER_MS)
      await rm(path, { recursive: true, force: true });
  }
}
