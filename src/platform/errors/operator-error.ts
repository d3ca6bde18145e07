import { toInstalledCommands } from './installed-commands.js';

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

/** Control characters, those that turn the direction of what follows, and Unicode's own line ends */
const CONTROLS = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/**
 * A text for a terminal that may be somebody else's: a name, or an error of the database. The terminal would obey what it
 * has of control characters, so they become question marks.
 *
 * @param kept those that belong to the text
 */
export function maskControls(text: string, kept = ''): string {
  return text.replaceAll(CONTROLS, (character) => (kept.includes(character) ? character : '?'));
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof OperatorError) return error.message;
  return 'syscall' in error ? error.message : (error.stack ?? error.message);
}
