import { execFileSync } from 'node:child_process';
import { cp, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';

/*
 * The example store as somebody copies it: outside of the checkout, with the platform and the tools as packages that npm
 * installs.
 */

/** The folder of the example */
export const EXAMPLE = 'examples/another-store';
/** What a store installs, in the order in which the packages need each other */
const PACKAGES = [
  ...['batch-loader', 'http-server', 'limits', 'embedded-postgres'],
  ...['platform', 'compatibility', 'client-core', 'tools'],
];

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

/** Packs all that a store installs. Returns the paths of the files. */
export const packPlatform = (into: string): string[] =>
  pack(into, ...PACKAGES.map((name) => `packages/${name}`));

/** Copies the example without what is built, and installs the packed packages there. */
export async function installExample(store: string, tarballs: readonly string[]): Promise<void> {
  await cp(EXAMPLE, store, { recursive: true, filter: isSource(EXAMPLE) });
  // `npm ci` refuses a lock file without what a package lists as optional and the registry lacks, as that of a newest Vite may.
  const { vite } = JSON.parse(await readFile('package.json', 'utf8')).devDependencies;
  install(store, ...tarballs, `vite@${vite}`);
}
