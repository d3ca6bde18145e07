import { toReported } from '../connections/outage.js';
import { toInstalledCommands } from '../operator-errors/installed-commands.js';
import { OperatorError } from '../operator-errors/operator-error.js';
import { maskControls } from './terminal-text.js';

/** Exits after printing the message of an OperatorError, or an internal error with its stack. */
export function exitWithError(root: URL, error: unknown, exitCode = 1): never {
  process.stderr.write(`${maskControls(describe(root, error), '\n\t')}\n`);
  process.exit(exitCode);
}

/** Ends a command with the exit code of its error: 4 where the database cannot be reached, or rejects it. */
export function exitWithCommandError(root: URL, error: unknown): never {
  const reported = toReported(error);
  exitWithError(root, reported, reported instanceof OperatorError ? reported.exitCode : 1);
}

function describe(root: URL, error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof OperatorError) return toInstalledCommands(root, error.message);
  return 'syscall' in error ? error.message : (error.stack ?? error.message);
}
