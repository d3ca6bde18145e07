import { DatabaseOutage, readReason } from '../database/outage.js';

/** Something the operator can fix. The message says what is wrong and what to do; it is shown without a stack. */
export class OperatorError extends Error {}

/** A server that the configuration names does not respond, or rejects what is asked of it. */
export class UnreachableError extends OperatorError {}

/** Exits after printing the message of an OperatorError, or an internal error with its stack. */
export function exitWithError(error: unknown, exitCode = 1): never {
  process.stderr.write(`${describe(error)}\n`);
  process.exit(exitCode);
}

/** What to do about a database that cannot be used, by what its error says. */
const ADVICE: readonly (readonly [pattern: RegExp, advice: string])[] = [
  [/no space left|disk quota/i, 'free space on its disk.'],
  [/certificate/i, 'check its certificate; NODE_EXTRA_CA_CERTS names a file with the CA that signed it.'],
  [
    /too many (?:clients|connections)|connection slots are reserved/i,
    'raise its max_connections or close connections of others; each process of the service opens up to 20.',
  ],
];
const DEFAULT_ADVICE = 'check that it is running and that DATABASE_URL points to it.';

/** The one line that an operator needs about an error of the database, whatever it was used for. */
export function toDatabaseError(error: unknown): UnreachableError {
  const reason = readReason(error);
  const [, advice = DEFAULT_ADVICE] = ADVICE.find(([pattern]) => pattern.test(reason)) ?? [];
  return new UnreachableError(`The database cannot be used (${reason}): ${advice}`, { cause: error });
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof OperatorError) return error.message;
  if (error instanceof DatabaseOutage) return toDatabaseError(error.cause).message;
  return 'syscall' in error ? error.message : (error.stack ?? error.message);
}
