import pg from 'pg';
import { STATEMENT_TIMEOUT_MS } from '../timing/timeouts.js';

/** Values as PostgreSQL shows them, by name */
export type SessionSettings = Readonly<Record<string, string>>;

/**
 * What every connection needs before its first use, whatever is set for the database, the role or the server.
 *
 * Prisma's adapter writes and reads times without their offset, which is only correct in UTC, and pg reads no date but
 * ISO's. A process that freezes within a transaction must not keep its locks. Timeouts that end statements or idle
 * connections sooner than expected would be a 503.
 */
export const SESSION_SETTINGS: SessionSettings = {
  TimeZone: 'UTC',
  DateStyle: 'ISO, MDY',
  extra_float_digits: '1',
  standard_conforming_strings: 'on',
  default_transaction_isolation: 'read committed',
  statement_timeout: `${STATEMENT_TIMEOUT_MS}ms`,
  lock_timeout: '0',
  idle_in_transaction_session_timeout: '5s',
  idle_session_timeout: '0',
  transaction_timeout: '0',
};

/**
 * Further settings for named statements, which are planned once per connection. By default, PostgreSQL plans statements
 * with arrays again for every execution, because a plan for one element looks cheaper than the generic one. On large tables
 * it also compiles them, because it overestimates their cost. Either takes longer than the statement itself. Every
 * statement has an index. So a plan that was made while a table was small must neither scan it once it is large, nor sort
 * rows that an index has in order.
 */
export const STATEMENT_SETTINGS: SessionSettings = {
  ...SESSION_SETTINGS,
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_sort: 'off',
  enable_incremental_sort: 'off',
  jit: 'off',
};

/**
 * For statements that join a few calls to a table, which should use its index row by row. Other joins are cheaper while the
 * table is small, but read the whole index once it is large.
 */
export const INDEX_JOINS: SessionSettings = { enable_hashjoin: 'off', enable_mergejoin: 'off' };

/** A limit that is off, as it is by default */
const OFF = '0';
/** Set for the role, the database or the session. Other settings change when the server reads its configuration files again. */
const LASTING_SOURCES = "'user', 'database', 'database user', 'client', 'session'";

/**
 * Sets the values that differ, or that might change with the configuration files. Nothing is set if the role has all
 * values, because a pooler would pass a client's settings on to the next client, or keep the connection for that client
 * alone. Settings that this PostgreSQL lacks are skipped. Returns the number of the server process.
 */
export async function applySettings(client: pg.ClientBase, settings: SessionSettings): Promise<unknown> {
  const wanted = Object.entries(settings).map((setting) => `(${setting.map(pg.escapeLiteral).join(', ')})`);
  const { rows } = await client.query<{ pid: number }>(`
    SELECT pg_backend_pid() AS pid, count(set_config(name, value, false)) FILTER (
      WHERE current_setting(name) <> value OR (source NOT IN (${LASTING_SOURCES}) AND value <> '${OFF}'))
    FROM pg_settings JOIN (VALUES ${wanted.join(', ')}) AS wanted (name, value) USING (name)`);
  return rows[0]?.pid;
}
