export type EmbeddedPostgresErrorCode =
  /** Another process has opened the data directory in exclusive mode. */
  | 'IN_USE'
  /** The data directory cannot be created, read or written, belongs to another user, or holds something else. */
  | 'DATA_DIR_UNUSABLE'
  /** PostgreSQL's programs are not installed or do not run on this machine. */
  | 'CANNOT_RUN'
  /** The server does not start, does not stop, or does not accept this process's connections. */
  | 'SERVER_FAILED';

/** PostgreSQL is not available. The message says why and, where that is known, what to do about it. */
export class EmbeddedPostgresError extends Error {
  override readonly name = 'EmbeddedPostgresError';
  readonly code: EmbeddedPostgresErrorCode;
  /** With `IN_USE`: the process that has opened the data directory, if it is known */
  readonly pid: number | undefined;

  constructor(
    code: EmbeddedPostgresErrorCode,
    message: string,
    options: ErrorOptions & { pid?: number | undefined } = {},
  ) {
    super(message, options);
    this.code = code;
    this.pid = options.pid;
  }
}

export function toMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** What to do when an error is about the file system below the data directory; undefined for other errors. */
export function findRemedy(error: unknown): string | undefined {
  const message = toMessage(error);
  // The last alternative is PostgreSQL's message for a write that did not fit on the disk completely.
  if (/no space left on device|disk quota exceeded|wrote only \d+ of \d+ bytes/i.test(message))
    return 'free some disk space';
  if (/read-only file system/i.test(message)) return 'make its file system writable';
  return undefined;
}

/** The line of a program's output that says what went wrong, without PostgreSQL's time and process number. */
export function findErrorLine(output: string): string {
  const lines = output.trim().split('\n');
  const line = lines.find((line) => /error|fatal|panic/i.test(line)) ?? lines[0] ?? '';
  return line.replace(/^[-\d]+ [:.\d]+ \w+ \[\d+\] /, '');
}
