import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { execute } from '../support/execute.js';
import { createTestDatabase } from '../support/test-service.js';

let url: string;
/** A role that may log in, and has no grant */
const outsider = `outsider_${randomBytes(4).toString('hex')}`;
let outsiderUrl: string;

beforeAll(async () => {
  url = await createTestDatabase();
  await execute(url, `CREATE ROLE ${outsider} LOGIN PASSWORD '${outsider}'`);
  outsiderUrl = Object.assign(new URL(url), { username: outsider, password: outsider }).href;
});
afterAll(() => execute(url, `DROP OWNED BY ${outsider}; DROP ROLE ${outsider}`));

interface FunctionRow {
  readonly name: string;
  readonly isDefiner: boolean;
  readonly path: string | null;
  readonly isPublic: boolean;
}

/** All functions of the schema but those of extensions. */
const FUNCTIONS = `
  SELECT proname AS name, prosecdef AS "isDefiner",
    (SELECT substring(setting FROM '^search_path=(.*)$') FROM unnest(proconfig) AS setting WHERE setting LIKE 'search_path=%') AS path,
    EXISTS (
      SELECT FROM aclexplode(coalesce(proacl, acldefault('f', proowner))) WHERE grantee = 0 AND privilege_type = 'EXECUTE'
    ) AS "isPublic"
  FROM pg_proc
  WHERE pronamespace = 'public'::regnamespace
    AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = pg_proc.oid AND deptype = 'e')`;

test('no function runs with the rights of its owner, finds an object of another role, or can be called by everybody', async () => {
  const functions = await execute<FunctionRow>(url, FUNCTIONS);
  expect(functions.length).toBeGreaterThan(0);
  for (const { name, ...rights } of functions) {
    expect(rights, name).toEqual({
      isDefiner: false,
      path: expect.stringMatching(/^pg_catalog, (public, )?pg_temp$/),
      isPublic: false,
    });
  }
});

test('triggers fire for replication, and for whoever sets session_replication_role, too', async () => {
  const triggers = await execute<{ name: string; enabled: string }>(
    url,
    'SELECT tgname AS name, tgenabled AS enabled FROM pg_trigger WHERE NOT tgisinternal',
  );
  expect(triggers.length).toBeGreaterThan(0);
  for (const { name, enabled } of triggers) expect(enabled, name).toBe('A');
});

test('a role without a grant cannot have code of its own run by another: with functions of the schema on tables of its own', async () => {
  const functions = await execute<FunctionRow>(url, FUNCTIONS);
  const tables = await execute<{ name: string }>(
    url,
    `SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'`,
  );
  const attempts = functions.map(
    ({ name }) => `
      CREATE TEMP TABLE bait_${name} (id uuid);
      CREATE TRIGGER bait AFTER UPDATE ON bait_${name} FOR EACH ROW EXECUTE FUNCTION public.${name}();
      INSERT INTO bait_${name} VALUES (gen_random_uuid());
      UPDATE bait_${name} SET id = id;`,
  );
  // Each table of the schema has a temporary one of its name, whose trigger tries what only a superuser may do.
  const traps = tables.map(
    ({ name }) => `
      CREATE TEMP TABLE ${name} (api_key_id uuid PRIMARY KEY, transaction bigint, changed_at timestamptz);
      CREATE TRIGGER trap BEFORE INSERT ON ${name} FOR EACH ROW EXECUTE FUNCTION pg_temp.trap();
      GRANT ALL ON ${name} TO PUBLIC;`,
  );
  const trap = `
    CREATE FUNCTION pg_temp.trap() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN EXECUTE 'ALTER ROLE ${outsider} SUPERUSER'; RETURN NEW; END $$;`;
  for (const attempt of attempts) {
    await expect(execute(outsiderUrl, trap + traps.join('') + attempt)).rejects.toThrow(/permission denied/);
  }
  const rows = await execute(url, `SELECT rolsuper FROM pg_roles WHERE rolname = '${outsider}'`);
  expect(rows).toEqual([{ rolsuper: false }]);
});

test('a change of a key is on record or refused, for a role that may change keys and has a table of the same name', async () => {
  await execute(url, `GRANT SELECT, UPDATE ON api_keys TO ${outsider}`);
  const [key] = await execute<{ id: string }>(
    url,
    `INSERT INTO api_keys (name, hash, start, plan) VALUES ('x', decode(repeat('07', 32), 'hex'), 'x', 'free') RETURNING id`,
  );
  const change = `
    CREATE TEMP TABLE api_key_changes (api_key_id uuid PRIMARY KEY, transaction bigint, changed_at timestamptz);
    UPDATE public.api_keys SET revoked_at = NULL`;
  await expect(execute(outsiderUrl, change)).rejects.toThrow('permission denied for table api_key_changes');
  await execute(url, `GRANT SELECT, INSERT, UPDATE ON api_key_changes TO ${outsider}`);
  await execute(outsiderUrl, `SET search_path = pg_temp, public; ${change}`);
  expect(await execute(url, 'SELECT api_key_id AS id FROM api_key_changes')).toEqual([key]);
});
