import { TimeoutError } from '../timeouts.js';

/** Prisma's codes for a database that cannot be reached, rejects the connection, or has none left. */
const PRISMA_CODES = new Set(['P1001', 'P1002', 'P1003', 'P1008', 'P1010', 'P1017', 'P2024', 'P2037']);

/**
 * SQLSTATE classes (PostgreSQL, appendix A): 08 connection exception, 28 invalid authorization, 3D no such database,
 * 53 insufficient resources, 57 operator intervention, 58 system error. 25006 is a read-only server; 26000 a statement
 * that is not prepared, because preparing it failed in one of these ways for the query sent before this one.
 */
const SQLSTATES = /^(?:08|28|3D|53|57|58)|^(?:25006|26000)$/;

/**
 * Prisma's adapter reports a failed socket as one of these, without a SQLSTATE and, for raw queries, without a code.
 */
const ADAPTER_KINDS = new Set([
  'DatabaseNotReachable',
  'ConnectionClosed',
  'SocketTimeout',
  'TlsConnectionError',
]);

/** Node.js' codes of failed sockets and DNS lookups. */
const SOCKET_CODES = /^(?:ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_)/;

/** Errors of pg that have no code. */
const PG_MESSAGES =
  /^(?:Connection terminated|The server does not support SSL|Query read timeout|timeout e(?:xpired|xceeded when trying to connect)|Client )/;

/**
 * Whether an error means that the database cannot serve now (503, try again) rather than that the query is wrong (500).
 */
export function isDatabaseOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  const sqlstate = readSqlState(error) ?? code;
  return (
    error instanceof TimeoutError ||
    PRISMA_CODES.has(code) ||
    ADAPTER_KINDS.has(readAdapterCause(error).kind ?? '') ||
    SQLSTATES.test(sqlstate) ||
    SOCKET_CODES.test(code) ||
    PG_MESSAGES.test(error.message)
  );
}

/** The SQLSTATE of a failed query of Prisma. */
export function readSqlState(error: unknown): string | undefined {
  return readAdapterCause(error).originalCode;
}

/**
 * How Prisma's adapter describes a failure. Prisma keeps the description under `meta.driverAdapterError.cause`; a
 * failure of COMMIT or ROLLBACK is the adapter's own error, with the description under `cause`.
 */
function readAdapterCause(error: unknown): { kind?: string; originalCode?: string } {
  const failed = error as { meta?: { driverAdapterError?: { cause?: unknown } }; cause?: unknown };
  const cause = failed.meta?.driverAdapterError?.cause ?? failed.cause;
  if (typeof cause !== 'object' || cause === null) return {};
  const { kind, originalCode } = cause as { kind?: unknown; originalCode?: unknown };
  return {
    ...(typeof kind === 'string' && { kind }),
    ...(typeof originalCode === 'string' && { originalCode }),
  };
}
