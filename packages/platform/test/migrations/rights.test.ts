import { randomBytes } from 'node:crypto';
import { execute, runNode } from '@animal-store/platform/testing';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { definition, insertSql, OTHER_TABLE, TABLE, TEXT } from '#operations-under-test';
import { applyGrants, listGrants } from '../../src/migrations/grants.js';
import { applyMigrations } from '../../src/migrations/migration-runner.js';
import { plantOverloads } from '../support/overloads.js';
import { programOf, run, runInProcess } from '../support/process.js';
import { asService, findServers } from '../support/service-role.js';
import { createTestDatabase, startService } from '../support/test-service.js';

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
      CREATE TEMP TABLE ${name} (id uuid PRIMARY KEY);
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
    `INSERT INTO api_keys (name, hash, hint, plan) VALUES ('x', decode(repeat('07', 32), 'hex'), 'x', 'free') RETURNING id`,
  );
  const change = `
    CREATE TEMP TABLE api_key_history (api_key_id uuid);
    UPDATE public.api_keys SET revoked_at = '2030-01-01'`;
  await expect(execute(outsiderUrl, change)).rejects.toThrow('permission denied for table api_key_history');
  await execute(url, `GRANT INSERT ON api_key_history TO ${outsider}`);
  await execute(outsiderUrl, `SET search_path = pg_temp, public; ${change}`);
  const recorded = `SELECT api_key_id AS id FROM api_key_history WHERE column_name = 'revoked_at'`;
  expect(await execute(url, recorded)).toEqual([key]);
});

test('a role that may create functions and operators in the schema has none of them run by a change of a key, or by a create', async () => {
  const own = await createTestDatabase();
  const role = `planter_${randomBytes(4).toString('hex')}`;
  await execute(
    own,
    `CREATE ROLE ${role} LOGIN PASSWORD '${role}'; GRANT CREATE ON SCHEMA public TO ${role}`,
  );
  onTestFinished(async () => {
    await execute(url, `DROP DATABASE ${new URL(own).pathname.slice(1)}`);
    await execute(url, `DROP ROLE ${role}`);
  });
  const key = `INSERT INTO api_keys (name, hash, hint, plan) VALUES ('x', sha256('x'), 'x', 'free')`;
  await execute(own, key);
  await plantOverloads(own, Object.assign(new URL(own), { username: role, password: role }).href);
  // Which are taken where PostgreSQL's are not named, even if its schema comes first.
  for (const call of ['to_jsonb(api_keys)', "17::oid = 'bytea'::regtype"]) {
    const unqualified = execute(own, `SET search_path = pg_catalog, public; SELECT ${call} FROM api_keys`);
    await expect(unqualified, call).rejects.toThrow('hijacked');
  }
  await execute(own, insertSql("'x'"));
  await execute(own, `UPDATE api_keys SET name = 'y', hash = sha256('y'); DELETE FROM api_keys`);
  await execute(own, `${key}; TRUNCATE api_keys CASCADE`);
});

const TABLES = `
  SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') ORDER BY 1`;

/** What a role may do with tables and sequences of the schema, by table. */
async function readPrivileges(role: string): Promise<Record<string, string[]>> {
  const rows = await execute<{ name: string; privileges: string[] }>(
    url,
    `SELECT relname AS name, array_agg(privilege_type::text ORDER BY privilege_type) AS privileges
     FROM pg_class, aclexplode(relacl) WHERE relnamespace = 'public'::regnamespace AND grantee = $1::regrole GROUP BY 1`,
    [role],
  );
  return Object.fromEntries(rows.map(({ name, privileges }) => [name, privileges]));
}

test('the role that services run as has the documented grants and nothing else', async () => {
  const { name } = findServers().serviceRole;
  const granted = Object.entries(listGrants(definition.identity.grants).service).map(
    ([table, privileges]) => [table, [...privileges].sort()],
  );
  expect(await readPrivileges(name)).toEqual(Object.fromEntries(granted));
  const [role] = await execute(
    url,
    `SELECT rolsuper, rolcreaterole, rolcreatedb, rolbypassrls, rolreplication,
       has_schema_privilege(rolname, 'public', 'CREATE') AS creates,
       EXISTS (SELECT FROM pg_auth_members WHERE member = pg_roles.oid) AS has_roles
     FROM pg_roles WHERE rolname = $1`,
    [name],
  );
  expect(new Set(Object.values(role ?? {}))).toEqual(new Set([false]));
  const service = new pg.Client(asService(url));
  await service.connect();
  expect((await service.query('SELECT current_user AS name')).rows).toEqual([{ name }]);
  await service.end();
});

test('the service has a grant on every table, so that a new one is not forgotten', async () => {
  const tables = await execute<{ name: string }>(url, TABLES);
  expect(tables.map(({ name }) => name).sort()).toEqual(
    Object.keys(listGrants(definition.identity.grants).service).sort(),
  );
});

test('an analyst reads the tables of the store, usage and keys, but no hash and no stored response, and writes nothing', async () => {
  const analyst = `analyst "${randomBytes(4).toString('hex')}`;
  const quoted = pg.escapeIdentifier(analyst);
  await execute(url, `CREATE ROLE ${quoted} LOGIN PASSWORD 'x'`);
  onTestFinished(async () => void (await execute(url, `DROP OWNED BY ${quoted}; DROP ROLE ${quoted}`)));
  for (let times = 0; times < 2; times += 1)
    await applyGrants(definition.identity.grants, url, analyst, 'read');
  const read = (sql: string) => execute(url, `SET ROLE ${quoted}; ${sql}`);
  for (const table of [TABLE, OTHER_TABLE, 'api_key_usage']) await read(`SELECT * FROM ${table}`);
  const columns = await execute<{ name: string }>(
    url,
    "SELECT column_name AS name FROM information_schema.columns WHERE table_name = 'api_keys'",
  );
  for (const { name } of columns) {
    const reading = read(`SELECT ${name} FROM api_keys`);
    if (name.endsWith('hash')) await expect(reading).rejects.toThrow('permission denied');
    else await reading;
  }
  for (const sql of [
    'SELECT * FROM idempotent_creates',
    `UPDATE ${TABLE} SET ${TEXT} = 'x'`,
    `DELETE FROM ${OTHER_TABLE}`,
    'TRUNCATE api_key_usage',
    insertSql("'x'"),
    'CREATE TABLE own (id int)',
  ])
    await expect(read(sql), sql).rejects.toThrow('permission denied');
});

test('grants for a role that does not exist, that owns the tables, or by one that does not, are refused on one line', async () => {
  await expect(applyGrants(definition.identity.grants, url, 'no "one', 'service')).rejects.toThrow(
    `There is no role "no "one": create it first, with: CREATE ROLE "no ""one" LOGIN PASSWORD '…'`,
  );
  const owner = decodeURIComponent(new URL(url).username);
  await expect(applyGrants(definition.identity.grants, url, owner, 'service')).rejects.toThrow(
    /is the role of DATABASE_URL, which owns/,
  );
  await expect(applyGrants(definition.identity.grants, asService(url), outsider, 'read')).rejects.toThrow(
    `The tables belong to "${owner}", who alone may grant: name that role in DATABASE_URL.`,
  );
});

test('a grant that is missing ends the start and shows in readiness, with the command that grants it', async () => {
  const own = await createTestDatabase();
  const { name } = findServers().serviceRole;
  const service = await startService({ databaseUrl: own });
  const ready = async () => (await fetch(`${service.url}/health/ready`)).status;
  await expect.poll(ready).toBe(200);
  await execute(own, `REVOKE DELETE ON api_key_usage FROM ${name}; REVOKE INSERT ON ${TABLE} FROM ${name}`);
  await expect.poll(ready).toBe(503);
  const message = new RegExp(
    `^The role of DATABASE_URL lacks INSERT on ${TABLE}, DELETE on api_key_usage\\.[^\\n]*--grant-to ROLE\\n$`,
  );
  const refusal = { code: 1, output: expect.stringMatching(message) };
  const program = run('main', [], { DATABASE_URL: own, PORT: '0' });
  expect({ code: await program.ended, output: program.output() }).toEqual(refusal);
  expect(await runInProcess(['keys', 'list'], { DATABASE_URL: own })).toEqual(refusal);
  const migrate = run('cli', ['migrate', '--grant-to', name], { DATABASE_URL: own });
  expect([await migrate.ended, migrate.output()]).toEqual([0, expect.stringContaining(`granted "${name}"`)]);
  await expect.poll(ready).toBe(200);
  await service.close();
});

test('row level security that hides rows instead of refusing is named by start, commands, readiness and --grant-to', async () => {
  const { name } = findServers().serviceRole;
  for (const table of [TABLE, '_prisma_migrations']) {
    const databaseUrl = await createTestDatabase();
    const lines: string[] = [];
    const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
    const service = await startService({ databaseUrl, log });
    onTestFinished(() => service.close());
    const switchOn = (table: string) =>
      execute(databaseUrl, `ALTER TABLE ${table} ENABLE ROW LEVEL SECURITY`);
    await switchOn(table);
    const said = new RegExp(`Row level security hides all rows of ${table} from `);
    const ready = async () => (await fetch(`${service.url}/health/ready`)).status;
    await expect.poll(ready).toBe(503);
    await expect.poll(() => lines.join('')).toMatch(said);
    const environment = { DATABASE_URL: asService(databaseUrl), APP_ENV: 'staging', PORT: '0' };
    for (const args of [[programOf('main')], [programOf('cli'), 'keys', 'list']]) {
      const program = runNode(args, environment);
      expect([args, await program.ended]).toEqual([args, 1]);
      expect(program.output()).toMatch(said);
    }
    await expect(applyGrants(definition.identity.grants, databaseUrl, name, 'service')).rejects.toThrow(said);
    await execute(databaseUrl, `CREATE POLICY all_rows ON ${table} TO ${name} USING (true)`);
    await applyGrants(definition.identity.grants, databaseUrl, name, 'service');
    await expect.poll(ready).toBe(200);
  }
});

test('what is for the owner is refused on one line for the role of the service', async () => {
  const own = await createTestDatabase();
  // A service that may create in every table with sample data could add it.
  await execute(own, `REVOKE INSERT ON ${TABLE} FROM ${findServers().serviceRole.name}`);
  for (const command of ['seed', 'migrate']) {
    if (command === 'migrate') await execute(own, 'DROP TABLE _prisma_migrations');
    const program = runNode([programOf('cli'), command], { DATABASE_URL: asService(own) });
    expect(await program.ended).not.toBe(0);
    expect(program.output()).toMatch(/^[^\n]+\n$/);
  }
});

test('in a schema of the URL, a change of a key is on record there, whatever search_path its session has', async () => {
  const own = new URL(await createTestDatabase('template0'));
  own.searchParams.set('schema', 'Ten"ant');
  await applyMigrations(own.href, definition.root);
  await applyGrants(definition.identity.grants, own.href, findServers().serviceRole.name, 'service');
  const service = new pg.Client(asService(own.href));
  await service.connect();
  onTestFinished(() => service.end());
  await service.query(`
    SET search_path = '';
    INSERT INTO "Ten""ant".api_keys (name, hash, hint, plan) VALUES ('x', decode(repeat('07', 32), 'hex'), 'x', 'free');
    ${insertSql("'x'", '"Ten""ant"')};
    UPDATE "Ten""ant".api_keys SET revoked_at = now()`);
  const history = await service.query(
    'SELECT column_name AS name FROM "Ten""ant".api_key_history ORDER BY changed_at',
  );
  expect(history.rows).toEqual([{ name: null }, { name: 'revoked_at' }]);
});
