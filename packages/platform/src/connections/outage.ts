import { ApiError } from '../errors/api-error.js';
import { OperatorError } from '../operator-errors/operator-error.js';
import { START_CONNECT_TIMEOUT_MS, withTimeout } from '../timing/timeouts.js';
import { LEAST_CONNECTIONS, LIMIT_PARAMETER, MOST_CONNECTIONS } from './connection-limit.js';

/**
 * The database cannot serve now: try again. The message says why in one line, with PostgreSQL's code; `cause` has the
 * rest.
 */
export class DatabaseOutage extends Error {
  override readonly name = 'DatabaseOutage';

  constructor(cause: unknown) {
    const code = readCode(cause);
    super(CODE.test(code) ? `${readReason(cause)} (${code})` : readReason(cause), { cause });
  }
}

/** An SQLSTATE, or a code of Prisma's. Codes of Node.js are in the message. */
const CODE = /^(?=.*\d)[0-9A-Z]{5}$/;

/**
 * SQLSTATE classes (PostgreSQL, appendix A) of errors that a statement itself causes: 0A feature not supported, 21
 * cardinality violation, 22 data exception, 23 integrity constraint violation, 42 syntax error or access rule
 * violation, 44 WITH CHECK OPTION violation, 54 program limit exceeded, P0 error raised in PL/pgSQL, such as an
 * operator's trigger.
 */
const QUERY_ERRORS = /^(?:0A|21|22|23|42|44|54|P0)/;

/**
 * Errors of a statement whose objects or session somebody else has restored, altered or removed: an outdated plan, a prepared
 * statement that is unknown or exists already, an object, a right or a constraint that is missing (yet), and internal errors
 * such as "cache lookup failed". The statement itself is right, and works on another connection, or a little later.
 */
const SHARING_ERRORS = /^(?:0A000|26000|3F000|42501|42703|42704|42804|42809|42883|42P01|42P05|42P10|XX000)$/;

/**
 * Prisma's codes of errors that the query itself caused. Left out are raw queries, missing tables and columns, connections
 * that could not be had, and transactions that could not be run.
 */
const PRISMA_QUERY_ERRORS = /^P2(?!010|021|022|024|028|034|037)/;

/** SQLSTATE, appendix A. */
const UNIQUE_VIOLATION = '23505';
/** The role lacks a grant. */
const PERMISSION_DENIED = '42501';

/** A deliberate answer, or a mistake in this program. */
const THROWN_BY_CODE = [ApiError, TypeError, RangeError, ReferenceError, SyntaxError];

/** An object of functions. An instance of a class with private members does not fit, because a copy would lack those. */
export type Functions<T> = { [Name in keyof T]: T[Name] } extends T
  ? { readonly [Name in keyof T]: (...args: never[]) => unknown }
  : never;

/**
 * An object with the same functions, which run queries. They reject with DatabaseOutage when the database cannot serve,
 * or does not within `timeoutMs`: a method may run several queries, each within QUERY_TIMEOUT_MS.
 *
 * @throws TypeError for an object of a class that TypeScript cannot tell from a plain one
 */
export function withOutages<T extends Functions<T>>(timeoutMs: number, target: T): T {
  if (Object.getPrototypeOf(target) !== Object.prototype)
    throw new TypeError('The methods of a class are lost');
  const race = (result: unknown) =>
    isPromise(result) ? detectOutage(withTimeout(timeoutMs, result)) : result;
  const functions = Object.entries<(...args: never[]) => unknown>(target as Readonly<Record<string, never>>);
  const methods = functions.map(([name, method]) => [name, (...args: never[]) => race(method(...args))]);
  return Object.fromEntries(methods);
}

/** Prisma's promises are not instances of Promise. */
function isPromise(value: unknown): value is Promise<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value;
}

/** Settles like a promise of a query, but rejects with DatabaseOutage when the database cannot serve. */
export function detectOutage<T>(query: Promise<T>): Promise<T> {
  return query.catch((error: unknown) => {
    throw isDatabaseOutage(error) ? new DatabaseOutage(error) : error;
  });
}

/**
 * Whether an error of a query means that the database cannot serve now (503, try again) rather than that the query is
 * wrong (500). A database can fail for any number of reasons, so every error counts as an outage, except known errors of
 * queries.
 */
export function isDatabaseOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (THROWN_BY_CODE.some((each) => error instanceof each)) return false;
  if (error.name === 'PrismaClientValidationError') return false;
  const code = readCode(error);
  return SHARING_ERRORS.test(code) || !(QUERY_ERRORS.test(code) || PRISMA_QUERY_ERRORS.test(code));
}

/** Whether the same statement may work on a new connection. PostgreSQL has stored nothing of it. */
export function isSessionStale(error: unknown): boolean {
  return error instanceof Error && SHARING_ERRORS.test(readCode(error));
}

/** An error of pg; of Prisma, which has the adapter's below `meta`; or of its adapter, for a failure of COMMIT or ROLLBACK. */
interface QueryError {
  readonly code?: unknown;
  readonly constraint?: unknown;
  readonly cause?: AdapterCause;
  readonly meta?: { readonly driverAdapterError?: { readonly cause?: AdapterCause } };
}
interface AdapterCause {
  readonly originalCode?: unknown;
  readonly originalMessage?: unknown;
  readonly constraint?: { readonly index?: unknown };
}

const readCause = ({ meta, cause }: QueryError) => meta?.driverAdapterError?.cause ?? cause;
const firstText = (...values: unknown[]) =>
  values.find((each): each is string => typeof each === 'string') ?? '';

/** The SQLSTATE of a failed query, else the code of the error, or ''. */
export function readCode(error: unknown): string {
  // Anything may be thrown, null, too.
  const failed: QueryError = Object(error);
  return firstText(readCause(failed)?.originalCode, failed.code);
}

/**
 * The constraint or unique index that a query violated, by its name, or ''. Of an EXCLUDE and a CHECK, Prisma has the name in
 * PostgreSQL's message only.
 */
export function readConstraint(error: unknown): string {
  const failed: QueryError = Object(error);
  const { constraint, originalMessage } = readCause(failed) ?? {};
  const [, named] = /constraint "(.+)"/.exec(firstText(originalMessage)) ?? [];
  return firstText(failed.constraint, constraint?.index, named);
}

/** The same of a unique constraint or index only. */
export function readUniqueViolation(error: unknown): string {
  return readCode(error) === UNIQUE_VIOLATION ? readConstraint(error) : '';
}

/** The last line of an error's message: Prisma puts the reason there, after the call that failed. */
function readReason(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.trim().split('\n').at(-1) ?? '';
}

/** What to do about a database that cannot be used, by what its error says. */
const ADVICE: readonly (readonly [pattern: RegExp, advice: string])[] = [
  [/no space left|disk quota/i, 'free space on its disk.'],
  [
    /permission denied/i,
    'let the owner of the tables grant the role of DATABASE_URL what it needs, with: npm run migrate -- --grant-to ROLE; ' +
      'migrations, seed and Prisma Studio are for the owner (docs/database.md of @animal-store/platform).',
  ],
  [
    /no encryption/i,
    'check whether it demands TLS, which sslmode=verify-full in DATABASE_URL asks for; where its certificate cannot be ' +
      'checked, as on Heroku, set PGSSLMODE=no-verify.',
  ],
  [/certificate/i, 'check its certificate; NODE_EXTRA_CA_CERTS names a file with the CA that signed it.'],
  [
    /too many (?:clients|connections)|connection slots are reserved/i,
    'pg_stat_activity says whose they are, and max_connections how many there may be; each process of the service opens ' +
      `up to ${MOST_CONNECTIONS}, or as many as ${LIMIT_PARAMETER} in DATABASE_URL says, and up to ${LEAST_CONNECTIONS} more while commits hang.`,
  ],
  [
    /(?:statement|lock) timeout|no answer within/i,
    'it is busy, or somebody holds a lock on the table: pg_stat_activity says who. Trying again later may help.',
  ],
];
const DEFAULT_ADVICE = 'check that it is running and that DATABASE_URL points to it.';

/** The one line that an operator needs about an error of the database, whatever it was used for. */
export function toDatabaseError(error: unknown): OperatorError {
  const reason = readReason(error);
  const [, advice = DEFAULT_ADVICE] = ADVICE.find(([pattern]) => pattern.test(reason)) ?? [];
  const message = `The database cannot be used (${reason}): ${advice}`;
  return new OperatorError(message, { cause: error, exitCode: 4 });
}

/** What pg and its pool say of a connection that was not opened in time */
const CONNECT_TIMEOUT = /connection timeout|timeout exceeded when trying to connect/;

/**
 * Runs a function again while it fails because a connection is not opened in time, for up to START_CONNECT_TIMEOUT_MS. A
 * start loads modules meanwhile, and its machine may be busy: a request gives up sooner, but is tried again by its client.
 */
export async function untilConnected<T>(run: () => Promise<T>): Promise<T> {
  const endsAt = performance.now() + START_CONNECT_TIMEOUT_MS;
  for (;;) {
    try {
      return await run();
    } catch (error) {
      const cause = error instanceof OperatorError ? error.cause : error;
      if (!CONNECT_TIMEOUT.test(readReason(cause)) || performance.now() > endsAt) throw error;
    }
  }
}

/** What a command says of an error: one line about the database if it cannot be used, else the error itself. */
export function toReported(error: unknown): unknown {
  if (error instanceof DatabaseOutage) return toDatabaseError(error.cause);
  return readCode(error) === PERMISSION_DENIED ? toDatabaseError(error) : error;
}
