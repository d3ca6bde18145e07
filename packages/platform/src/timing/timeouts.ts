export { TimeoutError, withTimeout } from '@animal-store/batch-loader';

/**
 * How long one request may wait for PostgreSQL and Redis. The sum of key lookup, one command to Redis and operation stays
 * under the 3 s within which the service promises a 503.
 */

/** Opening a connection to PostgreSQL. */
export const CONNECT_TIMEOUT_MS = 1_000;
/**
 * One statement, enforced by PostgreSQL. A timeout of this process alone would abandon the connection and open another,
 * while the abandoned one went on waiting for its lock and counted towards `max_connections`.
 */
export const STATEMENT_TIMEOUT_MS = 1_200;
/** The response to a statement. PostgreSQL ends the statement before, so a connection without a response is dead. */
export const QUERY_TIMEOUT_MS = 1_500;
/** The key lookup, however many statements it takes. */
export const KEY_LOOKUP_TIMEOUT_MS = 1_200;
/** The operation, however many statements it takes. */
export const OPERATION_TIMEOUT_MS = 1_500;
/** A readiness check, which is several queries. */
export const READINESS_TIMEOUT_MS = 2_000;
/** One command to Redis. */
export const REDIS_TIMEOUT_MS = 160;

/** The first connection of a start, which loads modules meanwhile. A supervisor may kill a start that notices a signal later. */
export const START_CONNECT_TIMEOUT_MS = 5_000;
/** Opening a connection for a command or a migration. Longer, because a command loads modules meanwhile, and does not retry. */
export const COMMAND_CONNECT_TIMEOUT_MS = 10_000;
/** One statement of a command, which may read the usage of all keys for a year. */
export const COMMAND_STATEMENT_TIMEOUT_MS = 30_000;

/** Runs a function and observes how long its promise took to settle, whether it resolved or rejected. */
export async function measure<T>(observe: (seconds: number) => void, run: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  try {
    return await run();
  } finally {
    observe((performance.now() - startedAt) / 1000);
  }
}
