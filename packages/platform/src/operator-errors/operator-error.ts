/** Something the operator can fix. The message says what is wrong and what to do; it is shown without a stack, and
 * with commands that work where the program is installed (toInstalledCommands). */
export class OperatorError extends Error {
  /** The exit code of a command that the error ends */
  readonly exitCode: number;

  constructor(message: string, { exitCode = 1, ...options }: ErrorOptions & { exitCode?: number } = {}) {
    super(message, options);
    this.exitCode = exitCode;
  }
}
