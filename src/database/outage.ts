import { TimeoutError } from '../timeouts.js';

/** Prisma's codes for a database that cannot be reached, refuses the connection, or has none left. */
const PRISMA_CODES = new Set(['P1001', 'P1002', 'P1003', 'P1008', 'P1010', 'P1017', 'P2024', 'P2037']);

/**
 * SQLSTATE classes (PostgreSQL, appendix A): 08 connection exception, 28 authorization refused, 3D no such database,
 * 53 insufficient resources, 57 operator intervention, 58 system error; 25006, a server that only reads; and 26000, a
 * statement that is not prepared, because preparing it failed so for the query that this one was sent behind.
 */
const SQLSTATES = /^(?:08|28|3D|53|57|58)|^(?:25006|26000)$/;

/** What Prisma's adapter makes of a failed socket in place of a SQLSTATE; of a raw query there is no code beside it. */
const ADAPTER_KINDS = new Set([
  'DatabaseNotReachable',
  'ConnectionClosed',
  'SocketTimeout',
  'TlsConnectionError',
]);

/** Node.js' names of failed sockets and look-ups. */
const SOCKET_CODES = /^(?:ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_)/;

/** What pg says without a code. */
const PG_MESSAGES =
  /^(?:Connection terminated|The server does not support SSL|Query read timeout|timeout e(?:xpired|xceeded when trying to connect)|Client )/;

/**
 * Whether an error of a query means that the database cannot serve now (503, try again), rather than that the query
 * was at fault (500).
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

/** PostgreSQL's SQLSTATE of a query of Prisma's that failed. */
export function readSqlState(error: unknown): string | undefined {
  return readAdapterCause(error).originalCode;
}

/**
 * What Prisma's adapter says of a failure. Prisma keeps it under `meta.driverAdapterError.cause`; what breaks while a
 * transaction ends comes as the adapter's own error, with it under `cause`.
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
