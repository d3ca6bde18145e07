import { existsSync } from 'node:fs';
import { isDatabaseOutage } from './database/outage.js';
import { OperatorError } from './operator-error.js';

/** Reads `.env` of the working directory when there is one; what the environment says already is kept. */
export function loadEnvironmentFile(): void {
  if (existsSync('.env')) process.loadEnvFile('.env');
}

/** Ends the process with status 1: with the message of what an operator can mend, with the stack of a fault of ours. */
export function exitWith(error: unknown): never {
  process.stderr.write(`${describe(error)}\n`);
  process.exit(1);
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof OperatorError) return error.message;
  if (isDatabaseOutage(error)) {
    // Prisma puts the reason last, behind the call that failed.
    const reason = error.message.trim().split('\n').at(-1);
    return `The database cannot be used (${reason}): see that it runs, and that DATABASE_URL leads to it.`;
  }
  return 'syscall' in error ? error.message : (error.stack ?? error.message);
}
