import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
export const run = promisify(execFile);
/** The packed client that the build leaves for the service to serve */
const BUILT_TARBALL = join(ROOT, 'dist/client.tgz');

const PACKAGE = 'packages/client';
/** What packing reads. A copy proves that it needs nothing else, and leaves the files of other tests alone. */
const SOURCES = ['package.json', 'tsconfig.base.json', PACKAGE];
/** npm hands the settings of this repository on to its scripts, but a front-end has npm's own: peers are installed. */
const SETTINGS = ['--legacy-peer-deps=false', '--prefer-offline', '--no-audit', '--no-fund', '--save-exact'];

/** A front-end with the client as its first dependency. */
export interface InstalledPackage {
  /** The folder of the front-end */
  readonly project: string;
  /** Where the package is in it */
  readonly installed: string;
  remove(): Promise<void>;
}

/**
 * Installs the client in a new front-end.
 *
 * @param tarball a path, or the address of a service's /client.tgz
 * @param others packages with their versions that the front-end has already
 */
export async function installPackage(
  tarball: string = BUILT_TARBALL,
  others: readonly string[] = [],
): Promise<InstalledPackage> {
  const project = await mkdtemp(join(tmpdir(), 'animal-store-front-end-'));
  await writeFile(join(project, 'package.json'), '{ "private": true, "type": "module" }');
  if (others.length > 0) await npm(project, 'install', ...SETTINGS, ...others);
  await npm(project, 'install', ...SETTINGS, tarball);
  return {
    project,
    installed: join(project, 'node_modules/@animal-store/client'),
    remove: () => rm(project, { recursive: true, force: true }),
  };
}

/**
 * Packs a copy of the sources by the command of the README.
 *
 * @param folder an empty one, which keeps the copy
 * @returns the path of the tarball
 */
export async function packCopy(folder: string): Promise<string> {
  const filter = (path: string) => !path.startsWith(join(ROOT, PACKAGE, 'dist'));
  for (const path of SOURCES) {
    await mkdir(join(folder, path, '..'), { recursive: true });
    await cp(join(ROOT, path), join(folder, path), { recursive: true, filter });
  }
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  const { stdout } = await npm(folder, 'pack', '--silent', '--workspace', '@animal-store/client');
  return join(folder, stdout.trim());
}

function npm(cwd: string, ...args: string[]) {
  return run('npm', args, { cwd });
}
