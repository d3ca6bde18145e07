import { existsSync } from 'node:fs';
import { ConfigError } from './config.js';
import { EmbeddedError } from './database/embedded.js';
import { isDatabaseOutage } from './database/outage.js';
import { DatabaseBehindError } from './database/source.js';
import { UnknownKeyError } from './keys/commands.js';

const EXPECTED = [ConfigError, EmbeddedError, DatabaseBehindError, UnknownKeyError];

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
  if (isDatabaseOutage(error)) return `The database cannot be reached: ${error.message.trim()}`;
  const isExpected = EXPECTED.some((type) => error instanceof type) || 'syscall' in error;
  return isExpected ? error.message : (error.stack ?? error.message);
}
