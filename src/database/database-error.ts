import { UnreachableError } from '../errors/operator-error.js';
import { readReason } from './outage.js';

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
