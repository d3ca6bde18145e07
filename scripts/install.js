import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/*
 * `node scripts/install.js scripts/checkers bench` installs what `npm ci` at the root leaves out, because neither the service nor `npm
 * test` needs it: the packages of folders with a lock file of their own. Commands that need these packages install them.
 */
const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** A copy of the lock file whose packages a folder has, because times of modification say little after a checkout. */
const INSTALLED = 'node_modules/.installed.json';

/** Installs the packages of a folder's lock file unless they are there. Ends this process if npm cannot. */
export function installFolder(folder) {
  const cwd = join(ROOT, folder);
  const lock = join(cwd, 'package-lock.json');
  const installed = join(cwd, INSTALLED);
  if (existsSync(installed) && readFileSync(installed).equals(readFileSync(lock))) return;
  process.stderr.write(`Installing the packages of ${folder}/ …\n`);
  const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error', '--fetch-retries=1'];
  // Standard output belongs to the calling command. On Windows, npm is a script of the shell.
  const { status } = spawnSync('npm', args, {
    cwd,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  });
  if (status !== 0) {
    const advice = 'they come from the registry, which "npm ping" tries to reach';
    process.stderr.write(`The packages of ${folder}/ could not be installed: ${advice}.\n`);
    process.exit(1);
  }
  copyFileSync(lock, installed);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.argv.slice(2).forEach(installFolder);
