import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
export const run = promisify(execFile);

/** What packing reads. A copy proves that it needs nothing else, and leaves the files of other tests alone. */
const SOURCES = [
  ...['package.json', 'LICENSE', 'tsconfig.base.json', 'scripts', 'docs/releases', 'dist'],
  ...['packages/client', 'packages/client-core', 'packages/tools'],
];
/** What is made here anew */
const MADE = /^(?:dist\/client|packages\/client(?:-core)?\/dist)/;
const CORE = 'packages/client-core';
const PACK = "import('./scripts/client-package.js').then(({ packClient }) => packClient())";
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
 * @param tarball a path, or the address of a service's
 * @param others packages with their versions that the front-end has already
 */
export async function installPackage(
  tarball?: string,
  others: readonly string[] = [],
): Promise<InstalledPackage> {
  const project = await mkdtemp(join(tmpdir(), 'animal-store-front-end-'));
  await writeFile(join(project, 'package.json'), '{ "private": true, "type": "module" }');
  if (others.length > 0) await npm(project, 'install', ...SETTINGS, ...others);
  await npm(project, 'install', ...SETTINGS, tarball ?? (await findPacked(ROOT)));
  return {
    project,
    installed: join(project, 'node_modules/@animal-store/client'),
    remove: () => rm(project, { recursive: true, force: true }),
  };
}

/** The path of the packed client that fits the sources, once they are built in the folder. */
export async function findPacked(folder: string): Promise<string> {
  const { file } = JSON.parse(await readFile(join(folder, 'dist/client.json'), 'utf8'));
  return join(folder, 'dist/clients', file);
}

/**
 * Copies what packing reads.
 *
 * @param folder an empty one, which keeps the copy
 */
export async function copySources(folder: string): Promise<void> {
  const filter = (path: string) => !MADE.test(relative(ROOT, path));
  for (const path of SOURCES) {
    await mkdir(join(folder, path, '..'), { recursive: true });
    await cp(join(ROOT, path), join(folder, path), { recursive: true, filter });
  }
  if (!existsSync(join(folder, 'node_modules')))
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  // Here a module finds the copies first.
  for (const [importing, name] of [
    ['scripts', 'tools'],
    ['packages/tools', 'client-core'],
  ] as const) {
    const modules = join(folder, importing, 'node_modules/@animal-store');
    await mkdir(modules, { recursive: true });
    await symlink(join(folder, 'packages', name), join(modules, name));
  }
}

/** Compiles and packs the client in a copy of the sources, as the build does. Returns the path of the file. */
export async function packCopy(folder: string, env: NodeJS.ProcessEnv = process.env): Promise<string> {
  const compiler = 'node_modules/typescript-native/bin/tsc';
  await run(process.execPath, [compiler, '--build', CORE, `${CORE}/tsconfig.cjs.json`], { cwd: folder, env });
  // Another umask, as other machines may have.
  await run('sh', ['-c', `umask 077; exec "${process.execPath}" -e "${PACK}"`], { cwd: folder, env });
  return findPacked(folder);
}

/** In a terminal: with the NODE_ENV that the tests have, npm would leave the development dependencies out. */
export function npm(cwd: string, ...args: string[]) {
  const { NODE_ENV: _mode, ...env } = process.env;
  return run('npm', args, { cwd, env });
}
