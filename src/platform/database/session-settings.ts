import pg from 'pg';
import { STATEMENT_TIMEOUT_MS } from '../timing/timeouts.js';

/** Values as PostgreSQL shows them, by name */
export type SessionSettings = Readonly<Record<string, string>>;

/**
 * What every connection needs before its first use, whatever is set for the database, the role or the server.
 *
 * Prisma's adapter writes and reads times without their offset, which is only correct in UTC. With `array_nulls` off, a
 * null in an array is the text NULL. A process that freezes within a transaction must not keep its locks, and what ends
 * statements sooner than expected, or idle connections, would be a 503.
 */
export const SESSION_SETTINGS: SessionSettings = {
  TimeZone: 'UTC',
  DateStyle: 'ISO, MDY',
  array_nulls: 'on',
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
 * The same for named statements, which are planned once per connection. Left to itself, PostgreSQL plans statements
 * with arrays again for every execution, because a plan for one element looks cheaper than the generic one, and on large
 * tables it compiles them, because it overestimates their cost. Either takes longer than the statement itself. All of
 * them have an index, and a plan made while a table was small must not scan it once it is large.
 */
export const STATEMENT_SETTINGS: SessionSettings = {
  ...SESSION_SETTINGS,
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  jit: 'off',
};

/** A limit that is off, as it is by default */
const OFF = '0';
/** Set for the role, the database or the session. Others change when the server reads its configuration files again. */
const LASTING_SOURCES = "'user', 'database', 'database user', 'client', 'session'";

/**
 * Sets what differs, or might change with the configuration files, and nothing if the role has these values already: a
 * pooler hands what one client has set on to the next, or keeps the connection for that client alone. A version of
 * PostgreSQL may lack some of them.
 * Returns the number of the process that runs the queries.
 */
export async function applySettings(client: pg.ClientBase, settings: SessionSettings): Promise<unknown> {
  const { rows } = await client.query<{ pid: number; name: string; value: string; lasts: boolean }>(`
    SELECT pg_catalog.pg_backend_pid() AS pid, name, pg_catalog.current_setting(name) AS value,
      source IN (${LASTING_SOURCES}) AS lasts
    FROM pg_catalog.pg_settings WHERE name IN ('${Object.keys(settings).join("', '")}')`);
  const changes = rows
    .filter(({ name, value, lasts }) => value !== settings[name] || (!lasts && value !== OFF))
    .map(({ name }) => `pg_catalog.set_config('${name}', ${pg.escapeLiteral(settings[name] ?? '')}, false)`);
  if (changes.length > 0) await client.query(`SELECT ${changes.join(', ')}`);
  return rows[0]?.pid;
}
