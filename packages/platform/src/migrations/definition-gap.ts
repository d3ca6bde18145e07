import { toDatabaseError } from '../connections/outage.js';
import type { Definition } from '../definition/definition.js';
import { OperatorError } from '../operator-errors/operator-error.js';
import type { MigratedSchema } from './migrations.js';

/** The plans and scopes that the database does not know. It may know more, which an older version does not name. */
const FIND_UNKNOWN = `
  SELECT
    ARRAY(
      SELECT name FROM unnest($2::text[]) AS named (name)
      WHERE NOT EXISTS (
        SELECT FROM pg_enum
        JOIN pg_type ON pg_type.oid = enumtypid
        JOIN pg_namespace ON pg_namespace.oid = typnamespace
        WHERE nspname = $1 AND typname = 'plan' AND enumlabel = name
      )
    ) AS plans,
    ARRAY(
      SELECT name FROM unnest($3::text[]) AS named (name), pg_constraint
      JOIN pg_namespace ON pg_namespace.oid = connamespace
      WHERE nspname = $1 AND conname = 'api_keys_scopes_known'
        AND strpos(pg_get_constraintdef(pg_constraint.oid), quote_literal(name)) = 0
    ) AS scopes`;

type Sold = Pick<Definition, 'plans' | 'scopes'>;

/** The plans and scopes of a definition that no migration of the store has added, in their order. */
export async function findUnknown({ plans, scopes }: Sold, { pool, schema }: MigratedSchema) {
  const { rows } = await pool
    .query<{ plans: string[]; scopes: string[] }>(FIND_UNKNOWN, [schema, Object.keys(plans), scopes])
    .catch((error: unknown) => {
      throw toDatabaseError(error);
    });
  const [unknown = { plans: [], scopes: [] }] = rows;
  return unknown;
}

/**
 * Rejects when no migration of the store has added a plan or a scope that its definition names: no key could have it.
 *
 * @throws OperatorError naming them, with what the migration has to say
 */
export async function checkSoldInDatabase(sold: Sold, database: MigratedSchema): Promise<void> {
  const unknown = await findUnknown(sold, database);
  const names = [
    ...unknown.plans.map((name) => `the plan ${name}`),
    ...unknown.scopes.map((name) => `the scope ${name}`),
  ];
  if (names.length === 0) return;
  const [plan] = unknown.plans;
  const statements =
    plan === undefined
      ? 'drop and add the constraint api_keys_scopes_known, and set the default of api_keys.scopes'
      : `ALTER TYPE "plan" ADD VALUE '${plan}'`;
  throw new OperatorError(
    `The database does not know ${names.join(', ')}, which the definition of the store names: add a migration (${statements}), which npx store-tools draft NAME writes.`,
  );
}
