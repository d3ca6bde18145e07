import { execFileSync } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';

/* A store as `npm run create` makes it: outside of the checkout, with the platform and the tools as packages in its folder. */

/** The folder of the example */
export const EXAMPLE = 'examples/boatyard';

/** The environment of a newcomer, without the settings, the databases and the mode that this run of tests hands on */
export function withoutSettings(): Record<string, string | undefined> {
  const { NODE_ENV: _mode, ...env } = process.env;
  return Object.fromEntries(Object.entries(env).filter(([name]) => !/^npm_|DATABASE_URL/i.test(name)));
}

/** A newcomer's npm. Returns its output. */
export const npm = (cwd: string, ...args: string[]): string =>
  execFileSync('npm', args, { cwd, env: withoutSettings(), encoding: 'utf8', stdio: 'pipe' });

/** What somebody copies of a store, and not what is made of it */
export const isSource = (root: string) => (path: string) =>
  !/(?:\/|^)(?:node_modules|dist|generated|\.data)(?:\/|$)/.test(path.slice(root.length));

/** Installs packages in a folder. Returns npm's output. */
export const install = (cwd: string, ...packages: string[]): string =>
  npm(cwd, 'install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error', ...packages);

/** Packs folders as they have been built into another one. Returns the paths of the files. */
export function pack(into: string, ...folders: string[]): string[] {
  const args = ['pack', '--silent', '--ignore-scripts', '--pack-destination', into];
  const names = npm(resolve('.'), ...args, ...folders.map((folder) => resolve(folder))).trim();
  return names.split('\n').map((name) => join(into, name));
}

/** Makes a store of the example, and adds what the registry of this run of tests makes necessary. */
export async function createStore(store: string, ...options: string[]): Promise<void> {
  npm('.', 'run', '--silent', 'create', '--', store, ...options);
  // A lock file is refused without what a package lists as optional and the registry lacks, as that of a newest Vite may.
  const path = join(store, 'package.json');
  const { vite } = (await readManifest('package.json')).devDependencies;
  const manifest = await readManifest(path);
  const resolutions = manifest.resolutions && { resolutions: { ...manifest.resolutions, vite } };
  const devDependencies = { ...manifest.devDependencies, vite };
  await writeFile(path, JSON.stringify({ ...manifest, devDependencies, ...resolutions }, undefined, 2));
}

/** The paths of the packages that a store has */
export const listPackages = async (store: string): Promise<string[]> =>
  (await readdir(join(store, 'packages'))).map((name) => join(store, 'packages', name));

interface Manifest {
  readonly devDependencies: Readonly<Record<string, string>>;
  /** Of a store made for Yarn */
  readonly resolutions?: Readonly<Record<string, string>>;
}

/** What a package.json says */
export async function readManifest(path: string) {
  return JSON.parse(await readFile(path, 'utf8')) as Manifest;
}
