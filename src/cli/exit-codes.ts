import { CommanderError } from 'commander';
import { DatabaseOutage } from '../database/outage.js';
import { OperatorError, UnreachableError } from '../errors/operator-error.js';

/** The arguments are wrong in a way that only the database shows. */
export class UsageError extends OperatorError {}

/** What the arguments name does not exist. */
export class NotFoundError extends OperatorError {}

/** For the help texts. docs/operations.md has the same list. */
export const EXIT_CODE_HELP = `
Exit codes:
  0  the command has done what it says
  1  anything else went wrong, as the message says
  2  wrong usage: an unknown command or option, an invalid value, an id that fits several keys
  3  there is no such key
  4  the database or Redis cannot be reached, or rejects the command: trying again later may help`;

/** The exit code for an error that ended a command. */
export function toExitCode(error: unknown): number {
  // Commander reports help and --version as errors, too.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof UsageError) return 2;
  if (error instanceof NotFoundError) return 3;
  if (error instanceof UnreachableError || error instanceof DatabaseOutage) return 4;
  return 1;
}
