import pg from 'pg';
import { type Database, openDatabase } from '../connections/client.js';
import type { Definition } from '../definition/definition.js';
import { findUnknown } from '../migrations/definition-gap.js';
import { listGrants } from '../migrations/grants.js';
import type { Resource } from '../operations/resource.js';
import { addTurnsSql, findMissingTurns } from '../tables/turns.js';

/** What a database lacks of a definition and its resources. */
export interface DefinitionGap {
  /** SQL, in whose order it runs */
  readonly statements: readonly string[];
  /** Scopes that keys get only by a migration */
  readonly scopes: readonly string[];
  /** Tables that the `grants` of the definition lack */
  readonly ungranted: readonly string[];
  /** Tables that the `grants` name, and no migration creates */
  readonly uncreated: readonly string[];
}

const SCOPES_CONSTRAINT = 'api_keys_scopes_known';

/** The constraints on which plans have limits in the row of a key, by their columns: a store may name them as it likes. */
const FIND_LIMITS = `
  SELECT conname AS name, pg_get_expr(conbin, conrelid) AS rule FROM pg_constraint, (
    SELECT array_agg(attnum) AS all_of, array_agg(attnum) FILTER (WHERE attname = 'plan') AS plan
    FROM pg_attribute WHERE attrelid = 'api_keys'::regclass AND attname IN ('plan', 'per_minute', 'per_day')
  ) AS columns
  WHERE conrelid = 'api_keys'::regclass AND contype = 'c' AND conkey @> columns.plan AND conkey <@ all_of AND conkey <> plan`;

const FIND_SCOPES = `
  SELECT FROM pg_constraint WHERE conrelid = 'api_keys'::regclass AND conname = '${SCOPES_CONSTRAINT}'`;

const LIST_TABLES = `
  SELECT relname AS name FROM pg_class
  WHERE relkind IN ('r', 'p') AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) ORDER BY relname`;

/**
 * Adds the plans that the enum of a database lacks, each at its place in the definition. A transaction of their own has to add
 * them, because that one cannot use them.
 *
 * @param url of a database that nothing else uses, such as a temporary one
 * @returns the statements
 */
export async function addPlans(definition: Definition, url: string): Promise<string[]> {
  return withConnections(definition, url, async (database) => {
    const names = Object.keys(definition.plans);
    const unknown = (await findUnknown(definition, database)).plans;
    const statements = names
      .filter((name) => unknown.includes(name))
      .map((name) => {
        const next = names.slice(names.indexOf(name)).find((each) => !unknown.includes(each));
        const place = next === undefined ? '' : ` BEFORE ${pg.escapeLiteral(next)}`;
        return `ALTER TYPE "plan" ADD VALUE ${pg.escapeLiteral(name)}${place};`;
      });
    for (const statement of statements) await database.pool.query(statement);
    return statements;
  });
}

/** The plans of a database that a definition lacks. */
export async function findRemovedPlans(definition: Definition, url: string): Promise<string[]> {
  return withConnections(definition, url, async ({ pool }) => {
    const { rows } = await pool.query<{ name: string }>(
      'SELECT unnest(enum_range(NULL::"plan"))::text AS name',
    );
    return rows.map(({ name }) => name).filter((name) => !Object.hasOwn(definition.plans, name));
  });
}

/** The statement that drops the constraints on limits, which compare plans. `findDefinitionGap` then lacks one. */
export async function dropLimits(definition: Definition, url: string): Promise<string> {
  return withConnections(definition, url, async ({ pool }) => {
    const { rows } = await pool.query<{ name: string }>(FIND_LIMITS);
    const changes = rows.map(({ name }) => `DROP CONSTRAINT ${pg.escapeIdentifier(name)}`);
    return changes.length === 0 ? '' : `ALTER TABLE "api_keys"\n    ${changes.join(',\n    ')};`;
  });
}

/**
 * What a database lacks of a definition whose plans it has (`addPlans`). The default of `api_keys.scopes` is not among it: that is
 * in prisma/platform.prisma, which Prisma's engine compares.
 */
export async function findDefinitionGap(
  definition: Definition,
  resources: readonly Resource[],
  url: string,
): Promise<DefinitionGap> {
  return withConnections(definition, url, async (database) => {
    const { scopes } = await findUnknown(definition, database);
    const changes = [
      ...(await changeScopes(definition, database, scopes)),
      ...(await changeLimits(definition, database)),
    ];
    // Creating a store names the tables that it inserts into.
    for (const { createStore } of resources) createStore(database);
    const turns = await findMissingTurns(database);
    const { rows } = await database.pool.query<{ name: string }>(LIST_TABLES, [database.schema]);
    const tables = rows.map(({ name }) => name);
    const granted = Object.keys(listGrants(definition.identity.grants).service);
    return {
      statements: [
        ...(changes.length === 0 ? [] : [`ALTER TABLE "api_keys"\n    ${changes.join(',\n    ')};`]),
        ...(turns.length === 0 ? [] : [addTurnsSql(turns, '"insert_turns"')]),
      ],
      scopes,
      ungranted: tables.filter((name) => !granted.includes(name)),
      uncreated: Object.keys(definition.identity.grants).filter((name) => !tables.includes(name)),
    };
  });
}

/** The changes of api_keys after which keys can have the scopes. The definition's own are known, and no others. */
async function changeScopes(
  { scopes }: Definition,
  { pool }: Database,
  unknown: readonly string[],
): Promise<string[]> {
  const { rowCount } = await pool.query(FIND_SCOPES);
  if (rowCount !== 0 && unknown.length === 0) return [];
  const list = scopes.map((scope) => pg.escapeLiteral(scope)).join(', ');
  return [
    ...(rowCount === 0 ? [] : [`DROP CONSTRAINT "${SCOPES_CONSTRAINT}"`]),
    `ADD CONSTRAINT "${SCOPES_CONSTRAINT}" CHECK ("scopes" <@ ARRAY[${list}]::TEXT[])`,
  ];
}

/** The changes after which keys have limits of their own in the plans without limits, and in no other plan. */
async function changeLimits({ plans }: Definition, { pool }: Database): Promise<string[]> {
  const own = Object.keys(plans).filter((name) => plans[name] === undefined);
  const { rows } = await pool.query<{ name: string; rule: string }>(FIND_LIMITS);
  const rule = rows.map(({ rule }) => `(${rule})`).join(' AND ') || 'true';
  // By what the constraints say of each plan, with and without either limit, however they are written
  const { rows: compared } = await pool.query<{ agrees: boolean }>(
    `SELECT bool_and(((${rule}) IS NOT FALSE) = (own = (per_minute IS NOT NULL) AND own = (per_day IS NOT NULL))) AS agrees
    FROM (SELECT name::"plan" AS plan, name = ANY ($2::text[]) AS own FROM unnest($1::text[]) AS name) AS plans,
      (VALUES (NULL::integer), (1)) AS minutes (per_minute), (VALUES (NULL::integer), (1)) AS days (per_day)`,
    [Object.keys(plans), own],
  );
  if (compared[0]?.agrees) return [];
  const names = own.map((name) => pg.escapeLiteral(name)).join(', ');
  const isOwn = own.length === 1 ? `"plan" = ${names}` : `"plan" IN (${names})`;
  const check =
    own.length === 0
      ? '"per_minute" IS NULL AND "per_day" IS NULL'
      : `(${isOwn}) = ("per_minute" IS NOT NULL) AND (${isOwn}) = ("per_day" IS NOT NULL)`;
  return [
    ...rows.map(({ name }) => `DROP CONSTRAINT ${pg.escapeIdentifier(name)}`),
    `ADD CONSTRAINT "api_keys_limits_of_${own.join('_') || 'none'}" CHECK (${check})`,
  ];
}

async function withConnections<T>(
  definition: Definition,
  url: string,
  use: (database: Database) => Promise<T>,
): Promise<T> {
  const database = openDatabase(url, () => {}, definition);
  try {
    return await use(database);
  } finally {
    await database.close();
  }
}
