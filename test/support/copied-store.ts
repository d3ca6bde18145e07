import { execFileSync } from 'node:child_process';
import { cp } from 'node:fs/promises';
import { join, resolve } from 'node:path';

/** The store that is copied */
export const EXAMPLE = 'examples/boatyard';
/** What it installs, in the order in which they need each other */
const PACKAGES = [
  ...['batch-loader', 'http-server', 'limits', 'embedded-postgres'],
  ...['platform', 'compatibility', 'client-core', 'tools'],
];

/** A newcomer's npm, without the settings, the mode and the databases that this run of tests hands on. Returns what it prints. */
export function npm(cwd: string, ...args: string[]): string {
  const { NODE_ENV: _mode, ...env } = process.env;
  const inherited = Object.entries(env).filter(([name]) => !/^npm_|DATABASE_URL/i.test(name));
  return execFileSync('npm', args, {
    cwd,
    env: Object.fromEntries(inherited),
    encoding: 'utf8',
    stdio: 'pipe',
  });
}

export const install = (cwd: string, ...packages: string[]) =>
  npm(cwd, 'install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error', ...packages);

/** Packs what a build has compiled. Returns the path of the file. */
export function pack(path: string, folder: string): string {
  const args = ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder];
  return join(folder, npm(resolve('.'), ...args, resolve(path)).trim());
}

/** Copies the example into a folder outside of the checkout, and installs the packages of this repository from files. */
export async function copyStore(folder: string) {
  const store = join(folder, 'boatyard');
  npm(resolve('packages/tools'), 'run', '--silent', 'build');
  const tarballs = PACKAGES.map((name) => pack(join('packages', name), folder));
  const isOurs = (path: string) =>
    !/(?:\/|^)(?:node_modules|dist|generated|\.data)(?:\/|$)/.test(path.slice(EXAMPLE.length));
  await cp(EXAMPLE, store, { recursive: true, filter: isOurs });
  install(store, ...tarballs);
  return { store, tarballs };
}
