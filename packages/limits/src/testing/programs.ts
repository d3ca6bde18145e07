import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The variable that names the folder in which the tests of a run note what they miss. */
export const MISSING_FOLDER = 'TEST_MISSING_FOLDER';

export function isOnPath(command: string, versionFlag = '--version'): boolean {
  return spawnSync(command, [versionFlag], { stdio: 'ignore' }).error === undefined;
}

/** Whether a program is on PATH. Without it, tests are skipped. */
export function hasProgram(command: string, versionFlag: string): boolean {
  if (isOnPath(command, versionFlag)) return true;
  reportMissing(command);
  return false;
}

/**
 * Notes that tests are skipped because this machine lacks something; the run ends with one line about everything that
 * was noted. With CI=true it is an error.
 */
export function reportMissing(what: string): void {
  if (process.env.CI === 'true') throw new Error(`With CI=true, no test is skipped for want of ${what}`);
  const folder = process.env[MISSING_FOLDER];
  if (folder === undefined) process.stderr.write(`There is no ${what}\n`);
  else writeFileSync(join(folder, encodeURIComponent(what)), '');
}
