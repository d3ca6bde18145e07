import { toInstalledCommands } from './installed-commands.js';
import { maskControls } from './terminal-text.js';

/** Something the operator can fix. The message says what is wrong and what to do; it is shown without a stack. */
export class OperatorError extends Error {
  /** Of a command that it ends */
  readonly exitCode: number;

  constructor(message: string, { exitCode = 1, ...options }: ErrorOptions & { exitCode?: number } = {}) {
    super(toInstalledCommands(message), options);
    this.exitCode = exitCode;
  }
}

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
