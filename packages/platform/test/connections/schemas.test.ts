import { createCaller, execute, post } from '@animal-store/platform/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  create,
  definition,
  list,
  newItem,
  newItemSchema,
  OTHER_TABLE,
  otherList,
  TABLE,
  TYPES,
} from '#operations-under-test';
import { openConnections } from '../../src/connections/connections.js';
import { schemaOf } from '../../src/connections/schema-name.js';
import { addSampleData } from '../../src/database/open-database.js';
import { applyGrants } from '../../src/migrations/grants.js';
import { applyMigrations } from '../../src/migrations/migration-runner.js';
import { issueRefusedKeys, runEveryOperation } from '../support/every-operation.js';
import { runKeys } from '../support/process.js';
import { findServers } from '../support/service-role.js';
import { createTestDatabase, startService, type TestService } from '../support/test-service.js';

const ODD_SCHEMA = `Tenant 2, d'ünd`;

let publicUrl: string;
let tenantUrl: string;

beforeAll(async () => {
  publicUrl = await createTestDatabase();
  tenantUrl = withParameters(publicUrl, { schema: ODD_SCHEMA });
  await addTenant(tenantUrl);
});

/** Makes a schema one of a service's. */
async function addTenant(url: string): Promise<void> {
  await applyMigrations(url, definition.root);
  await applyGrants(definition.identity.grants, url, findServers().serviceRole.name, 'service');
}

function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function withParameters(url: string, parameters: Readonly<Record<string, string>>): string {
  const changed = new URL(url);
  for (const [name, value] of Object.entries(parameters)) changed.searchParams.set(name, value);
  return changed.href.replaceAll('+', '%20');
}

async function withServices<T>(urls: readonly string[], run: (...services: TestService[]) => Promise<T>) {
  const services = await Promise.all(urls.map((databaseUrl) => startService({ databaseUrl })));
  return run(...services).finally(() => Promise.all(services.map((service) => service.close())));
}

test.each([
  ['postgresql://a:b@h/d', 'public'],
  ['postgresql://a:b@h/d?sslmode=disable', 'public'],
  ['postgresql:///d?host=/tmp&schema=shop', 'shop'],
  ['postgresql://a:b@h/d?schema=Tenant%20%222%22', 'Tenant "2"'],
])('%s is about the schema %s', (url, schema) => {
  expect(schemaOf(url)).toBe(schema);
});

test('two tenants in two schemas of a database see nothing of each other', async () => {
  await withServices([publicUrl, tenantUrl], async (one, other) => {
    const [ofOne, ofOther] = [createCaller(one), createCaller(other)];
    expect((await ofOne(create.path, post(newItem('One')))).status).toBe(201);
    expect((await ofOther(list.path)).body).toEqual([]);
    const keyed = post(newItem('Other', 2), { 'idempotency-key': 'same' });
    expect((await ofOther(create.path, keyed)).body.id).toBe(1);
    expect((await ofOne(list.path)).body).toEqual([{ id: 1, ...newItemSchema.parse(newItem('One')) }]);
    expect((await ofOther(list.path)).body).toEqual([{ id: 1, ...newItemSchema.parse(newItem('Other', 2)) }]);
    expect((await ofOther(list.path, { key: one.key })).status).toBe(401);
    expect((await ofOne(list.path, { key: other.key })).status).toBe(401);
    expect(await addSampleData(definition, one.database)).toBe(false);
    expect((await ofOther(otherList.path)).body).toEqual([]);
    const listed = await Promise.all([one, other].map(async ({ keys }) => (await keys.list()).length));
    expect(listed).toEqual([1, 1]);
  });
});

test('the commands are about the schema of the URL', async () => {
  const environment = { DATABASE_URL: tenantUrl };
  const { id, key } = await runKeys(environment, 'create', '--name', 'cli', '--plan', 'free');
  await withServices([publicUrl, tenantUrl], async (one, other) => {
    expect((await createCaller(other)(list.path, { key })).status).toBe(200);
    expect((await createCaller(one)(list.path, { key })).status).toBe(401);
  });
  expect((await runKeys(environment, 'revoke', id)).state).toBe('revoked');
});

/** Objects with the names of the service's and of PostgreSQL's */
const HOSTILE = `
  CREATE SCHEMA IF NOT EXISTS evil; GRANT USAGE ON SCHEMA evil TO PUBLIC;
  CREATE TABLE evil.${TABLE} (id text);
  CREATE TABLE evil.api_keys (id text);
  CREATE TABLE evil.api_key_usage (id text);
  CREATE TABLE evil.idempotent_creates (id text);
  CREATE TABLE evil.${OTHER_TABLE} (id text);
  ${TYPES.map((type) => `CREATE TYPE evil.${type} AS ENUM ('evil');`).join('\n')}
  CREATE TYPE evil.uuid AS (evil int);
  CREATE TYPE evil.date AS (evil int);
  CREATE TYPE evil.bytea AS (evil int);
  CREATE TYPE evil.timestamptz AS (evil int);
  CREATE FUNCTION evil.now() RETURNS timestamptz LANGUAGE sql AS $$ SELECT 'infinity'::pg_catalog.timestamptz $$;`;
test.each(["''", 'evil'])(
  'every operation works with the search_path %s between statements, as a pooler may leave it',
  async (path) => {
    const databaseUrl = await createTestDatabase();
    const expected = await withServices([databaseUrl], async (service) => {
      await addSampleData(definition, service.database);
      const refused = await issueRefusedKeys(service);
      const found = await runEveryOperation(service, refused);
      await execute(databaseUrl, HOSTILE);
      return { refused, found };
    });
    await withServices([databaseUrl], async (service) => {
      const { pool, reads, writes, keys } = service.serviceDatabase;
      for (const each of [pool, reads.pool, writes.pool, keys.pool])
        each.on('acquire', (client) => void client.query(`SET search_path = ${path}`).catch(() => {}));
      expect(await runEveryOperation(service, expected.refused)).toEqual(expected.found);
    });
  },
);

test('a search_path of the database or the role does not matter to new connections', async () => {
  const { pool, close } = openConnections(
    withParameters(publicUrl, { options: '-c search_path=evil' }),
    () => {},
  );
  expect((await pool.query('SHOW search_path')).rows).toEqual([{ search_path: 'public, pg_temp' }]);
  await close();
});

afterAll(() => execute(publicUrl, `DROP SCHEMA ${quote(ODD_SCHEMA)} CASCADE`));
