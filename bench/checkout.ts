import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** A checkout is the folder of a built version of this repository: this one, or the one it is compared with. */
export const THIS_CHECKOUT = fileURLToPath(new URL('..', import.meta.url));

/** The command line, newest place first: a version may be older than this file. */
const COMMAND_LINES = ['dist/cli.js', 'dist/cli/program.js'];

/** Migrates a database by the command line of a checkout. */
export async function migrate(checkout: string, databaseUrl: string): Promise<void> {
  const program = COMMAND_LINES.map((path) => join(checkout, path)).find(existsSync);
  if (program === undefined) throw new Error(`${checkout} is not built: run npm run build there`);
  const env = { PATH: process.env.PATH, APP_ENV: 'staging', DATABASE_URL: databaseUrl };
  await promisify(execFile)(process.execPath, [program, 'migrate'], { cwd: checkout, env });
}
