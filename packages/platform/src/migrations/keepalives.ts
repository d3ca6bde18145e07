import pg from 'pg';
import type { Queries } from '../connections/connections.js';

/**
 * With these, PostgreSQL notices within 30 s that a connection has been cut silently. docs/deploy/roles.sql gives the roles that
 * it creates the same.
 *
 * Source: https://www.postgresql.org/docs/current/runtime-config-connection.html#RUNTIME-CONFIG-TCP-SETTINGS
 */
const SETTINGS: Readonly<Record<string, string>> = {
  tcp_keepalives_idle: '10',
  tcp_keepalives_interval: '5',
  tcp_keepalives_count: '3',
  tcp_user_timeout: '20s',
};

/** A value that somebody else chose, for the role or for the database, is as good. */
const FIND_MISSING = `
  SELECT name FROM unnest($2::text[]) WITH ORDINALITY AS wanted (name, place)
  WHERE NOT EXISTS (
    SELECT FROM pg_db_role_setting, unnest(setconfig) AS setting
    WHERE setrole IN (0, (SELECT oid FROM pg_roles WHERE rolname = $1))
      AND setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
      AND starts_with(setting, name || '=')
  )
  ORDER BY place`;

/**
 * What to tell about a role that lacks some of them, and the SQL that mends it; undefined if it lacks none. Rejects with a
 * database error: see isDatabaseOutage.
 */
export async function findKeepaliveGap(
  database: Queries,
  role: string,
): Promise<{ readonly message: string; readonly sql: string } | undefined> {
  const { rows } = await database.pool.query<{ name: string }>(FIND_MISSING, [role, Object.keys(SETTINGS)]);
  if (rows.length === 0) return undefined;
  const sql = rows.map(
    ({ name }) => `ALTER ROLE ${pg.escapeIdentifier(role)} SET ${name} = '${SETTINGS[name]}';\n`,
  );
  const message =
    `Connections of "${role}" that a firewall cuts silently count against the limits of PostgreSQL until it notices, by ` +
    'default for two hours';
  return { message, sql: sql.join('') };
}
