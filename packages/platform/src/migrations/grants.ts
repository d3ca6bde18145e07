import pg from 'pg';
import { toDatabaseError } from '../connections/outage.js';
import { schemaOf } from '../connections/schema-name.js';
import type { Definition, Identity } from '../definition/definition.js';
import { OperatorError } from '../operator-errors/operator-error.js';
import { checkSoldInDatabase } from './definition-gap.js';
import { checkMigrations, MIGRATIONS_TABLE, type MigratedSchema } from './migrations.js';

type Grants = Identity['grants'];

const ALL: Grants[string] = ['SELECT', 'INSERT', 'UPDATE', 'DELETE'];

/** The least that the service and the commands on keys need, by table. docs/database.md says what for. */
const serviceGrants = (ofStore: Grants): Grants => ({
  ...ofStore,
  api_keys: ['SELECT', 'INSERT', 'UPDATE'],
  // The triggers of api_keys write it, with the rights of the role that changes a key. Nothing deletes a row.
  api_key_history: ['SELECT', 'INSERT'],
  // UPDATE is what locking a row takes. Nothing changes one.
  insert_turns: ['SELECT', 'UPDATE'],
  idempotent_creates: ['SELECT', 'INSERT', 'DELETE'],
  api_key_usage: ALL,
  [MIGRATIONS_TABLE]: ['SELECT'],
});

/** The least that `keys serve` needs, which runs beside programs that face the Internet. */
const KEYS_GRANTS: Grants = {
  api_keys: ['SELECT', 'INSERT', 'UPDATE'],
  api_key_history: ['SELECT', 'INSERT'],
  api_key_usage: ['SELECT'],
  [MIGRATIONS_TABLE]: ['SELECT'],
};

/** What an analyst of the store's data may read: all of it but hashes of keys and stored responses. */
const readGrants = (ofStore: Grants): Readonly<Record<string, '*' | readonly string[]>> => ({
  ...Object.fromEntries(Object.keys(ofStore).map((name) => [name, '*'] as const)),
  api_key_usage: '*',
  api_keys: [
    ...['id', 'name', 'owner', 'past_owners', 'hint', 'plan', 'per_minute', 'per_day', 'scopes'],
    ...['created_at', 'expires_at', 'previous_expires_at', 'revoked_at', 'banned_until', 'ban_seconds'],
  ],
});

/** On tables of other owners, PostgreSQL grants nothing, and only warns. */
const FIND_FOREIGN_TABLE = `
  SELECT relname AS name, pg_get_userbyid(relowner) AS owner FROM pg_class
  WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND relname = $2 AND NOT pg_has_role(relowner, 'USAGE')`;

/**
 * Tables whose rows PostgreSQL hides from a role (`$3`, or the current one) instead of refusing: row level security is on, and no
 * policy is for the role.
 */
const FIND_HIDDEN = `
  SELECT string_agg(relname, ', ' ORDER BY relname) AS hidden
  FROM pg_class, (SELECT coalesce($3, current_user)::name AS name) AS reader
  WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND relname = ANY ($2) AND relrowsecurity
    AND (relforcerowsecurity OR NOT pg_has_role(reader.name, relowner, 'USAGE'))
    AND NOT (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = reader.name)
    AND NOT EXISTS (
      SELECT FROM pg_policy, unnest(polroles) AS allowed
      WHERE polrelid = pg_class.oid AND (allowed = 0 OR pg_has_role(reader.name, allowed, 'USAGE'))
    )`;

/** By who gets them. @param ofStore what the service may do with the store's own tables */
export const listGrants = (ofStore: Grants) =>
  ({ service: serviceGrants(ofStore), keys: KEYS_GRANTS, read: readGrants(ofStore) }) as const;

/** Who gets them */
export type GrantKind = keyof ReturnType<typeof listGrants>;
/** The option of `migrate` that grants what is checked before something runs */
const OPTIONS = { service: '--grant-to', keys: '--grant-keys-to' } as const;

/**
 * Grants a role what it needs on the migrated schema of a URL, whose role owns the tables. Takes nothing away, and may be
 * repeated, as after migrations that add tables.
 *
 * @throws OperatorError when there is no such role, the role of the URL is not the owner, or row level security hides rows
 */
export async function applyGrants(
  ofStore: Grants,
  url: string,
  role: string,
  kind: GrantKind,
): Promise<void> {
  const schema = schemaOf(url);
  const client = new pg.Client(url);
  client.on('error', () => {});
  try {
    await client.connect();
    const { rows } = await client.query<{ isOwn: boolean }>(
      'SELECT rolname = current_user AS "isOwn" FROM pg_roles WHERE rolname = $1',
      [role],
    );
    const [found] = rows;
    if (found === undefined) {
      throw new OperatorError(
        `There is no role "${role}": create it first, with: CREATE ROLE ${pg.escapeIdentifier(role)} LOGIN PASSWORD '…'`,
        { exitCode: 2 },
      );
    }
    if (found.isOwn) {
      throw new OperatorError(
        `"${role}" is the role of DATABASE_URL, which owns the tables: name the role that the service is to run as.`,
        { exitCode: 2 },
      );
    }
    const { rows: foreign } = await client.query(FIND_FOREIGN_TABLE, [schema, MIGRATIONS_TABLE]);
    if (foreign[0] !== undefined) {
      throw new OperatorError(
        `The tables belong to "${foreign[0].owner}", who alone may grant: name that role in DATABASE_URL.`,
      );
    }
    // Several statements in one query are one transaction.
    await client.query(grantSql(ofStore, schema, role, kind));
    await checkRowSecurity(client, schema, Object.keys(listGrants(ofStore)[kind]), role);
  } catch (error) {
    throw error instanceof OperatorError ? error : toDatabaseError(error);
  } finally {
    await client.end();
  }
}

function grantSql(ofStore: Grants, schema: string, role: string, kind: GrantKind): string {
  const [within, to] = [pg.escapeIdentifier(schema), pg.escapeIdentifier(role)];
  const grants =
    kind === 'read'
      ? Object.entries(readGrants(ofStore)).map(toReadGrant)
      : Object.entries(listGrants(ofStore)[kind]);
  return [
    `GRANT USAGE ON SCHEMA ${within} TO ${to}`,
    ...grants.map(
      ([table, privileges]) => `GRANT ${privileges} ON ${within}.${pg.escapeIdentifier(table)} TO ${to}`,
    ),
  ].join('; ');
}

function toReadGrant([table, columns]: [table: string, columns: '*' | readonly string[]]) {
  const names =
    columns === '*' ? '' : ` (${columns.map((column) => pg.escapeIdentifier(column)).join(', ')})`;
  return [table, `SELECT${names}`] as const;
}

/** @throws OperatorError when row level security hides the rows of tables from a role, by default from the one that asks */
async function checkRowSecurity(
  database: Pick<pg.Pool, 'query'>,
  schema: string,
  tables: readonly string[],
  role?: string,
): Promise<void> {
  const { rows } = await database.query<{ hidden: string | null }>(FIND_HIDDEN, [schema, tables, role]);
  const hidden = rows[0]?.hidden;
  if (hidden == null) return;
  const whom = role === undefined ? 'the role of DATABASE_URL' : `"${role}"`;
  throw new OperatorError(
    `Row level security hides all rows of ${hidden} from ${whom}. Switch it off (ALTER TABLE … DISABLE ROW LEVEL SECURITY), ` +
      'or create a policy for the role (docs/database.md#row-level-security of @animal-store/platform).',
  );
}

const FIND_MISSING = `
  SELECT string_agg(privilege || ' on ' || name, ', ') AS missing
  FROM unnest($2::text[], $3::text[]) AS needed (name, privilege)
  WHERE NOT has_table_privilege(format('%I.%I', $1::text, name), privilege)`;

/**
 * Rejects when the service cannot run on a database: the one answer of the start, of readiness and of the commands.
 *
 * @throws OperatorError when the schema is behind (see checkMigrations), lacks a plan or a scope of the definition, or the role
 * lacks a grant or sees no rows
 */
export async function checkSchema(
  definition: Definition,
  database: MigratedSchema,
  kind: keyof typeof OPTIONS = 'service',
): Promise<void> {
  const { root, identity } = definition;
  const grants = listGrants(identity.grants)[kind];
  // It would hide the migrations, too.
  await checkRowSecurity(database.pool, database.schema, Object.keys(grants)).catch((error: unknown) => {
    throw error instanceof OperatorError ? error : toDatabaseError(error);
  });
  await checkMigrations(root, database);
  const needed = Object.entries(grants).flatMap(([table, privileges]) =>
    privileges.map((privilege) => [table, privilege] as const),
  );
  const [tables, privileges] = [needed.map(([table]) => table), needed.map(([, privilege]) => privilege)];
  const found = database.pool
    .query<{ missing: string | null }>(FIND_MISSING, [database.schema, tables, privileges])
    .catch((error: unknown) => {
      throw toDatabaseError(error);
    });
  // At the same time, because readiness has little time on a busy machine.
  const [{ rows }] = await Promise.all([found, checkSoldInDatabase(definition, database)]);
  const missing = rows[0]?.missing;
  if (missing == null) return;
  throw new OperatorError(
    `The role of DATABASE_URL lacks ${missing}. Let the owner of the tables grant it, with: npm run migrate -- ${OPTIONS[kind]} ROLE`,
  );
}
