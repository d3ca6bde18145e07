import { OperatorError } from '../errors/operator-error.js';
import { maskControls } from './terminal-text.js';

/** Exits after printing the message of an OperatorError, or an internal error with its stack. */
export function exitWithError(error: unknown, exitCode = 1): never {
  process.stderr.write(`${maskControls(describe(error), '\n\t')}\n`);
  process.exit(exitCode);
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof OperatorError) return error.message;
  return 'syscall' in error ? error.message : (error.stack ?? error.message);
}
