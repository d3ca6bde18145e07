import { execFileSync } from 'node:child_process';

export function isOnPath(command: string, versionFlag = '--version'): boolean {
  try {
    execFileSync(command, [versionFlag], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Whether a program is on PATH. Without it, tests are skipped with a message; with CI=true that is an error. */
export function hasProgram(command: string, versionFlag: string, what: string): boolean {
  if (isOnPath(command, versionFlag)) return true;
  if (process.env.CI === 'true') throw new Error(`CI needs ${command} on PATH`);
  process.stderr.write(`Skipped the tests with ${what}: there is no ${command} on PATH\n`);
  return false;
}
