import { createCaller, execute, until } from '@animal-store/platform/testing';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { definition, list } from '#operations-under-test';
import { openConnections } from '../../src/connections/connections.js';
import { hashKey } from '../../src/keys/format.js';
import { createKeyStore } from '../../src/keys/store.js';
import { COLUMN_CHANGES } from '../support/key-columns.js';
import { rotate } from '../support/rotate.js';
import { asService } from '../support/service-role.js';
import { createTestDatabase, startService } from '../support/test-service.js';

/** The contract's two seconds, and room for a busy machine */
const FELT = { timeout: 2_000 + 5_000 };

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

/** A service with keys that are in use all the time while `status` is polled. */
async function start(databaseUrl?: string) {
  const service = await startService(databaseUrl === undefined ? {} : { databaseUrl });
  onTestFinished(() => service.close());
  const useKey = async (key: string) => {
    const status = async () => (await createCaller({ url: service.url, key })(list.path)).status;
    await expect.poll(status).toBe(200);
    return status;
  };
  const issue = async () => {
    const { apiKey, key } = await service.keys.create({ name: 'x', plan: 'business' });
    return { id: apiKey.id, status: await useKey(key) };
  };
  return { service, url: service.databaseUrl, useKey, issue };
}

const REVOKE = 'UPDATE api_keys SET revoked_at = now()';
/** What ends all keys of a database, and how */
const ENDS: Readonly<Record<string, string>> = {
  'an UPDATE': REVOKE,
  'an UPDATE while triggers are off': `ALTER TABLE api_keys DISABLE TRIGGER USER; ${REVOKE}; ALTER TABLE api_keys ENABLE TRIGGER USER`,
  'an UPDATE as by replication': `SET session_replication_role = replica; ${REVOKE}`,
  'an UPDATE while triggers are ordinary ones, as by replication': `
    ALTER TABLE api_keys ENABLE TRIGGER USER; SET session_replication_role = replica; ${REVOKE}`,
  'a DELETE': 'DELETE FROM api_keys',
  'a TRUNCATE': 'TRUNCATE api_keys CASCADE',
  'another table in its place': `
    CREATE TABLE restored (LIKE api_keys INCLUDING ALL); INSERT INTO restored SELECT * FROM api_keys;
    UPDATE restored SET revoked_at = now(); GRANT SELECT ON restored TO PUBLIC;
    ALTER TABLE api_keys RENAME TO lost; ALTER TABLE restored RENAME TO api_keys`,
  'a column that takes the name of another': `
    ALTER TABLE api_keys RENAME expires_at TO other; ALTER TABLE api_keys RENAME created_at TO expires_at;
    ALTER TABLE api_keys RENAME other TO created_at`,
  'a column that is added again': `
    ALTER TABLE api_keys DROP revoked_at; ALTER TABLE api_keys ADD revoked_at timestamptz(3) DEFAULT now()`,
};

test.each(Object.entries(ENDS))('%s ends a key in use within two seconds', async (_name, sql) => {
  const { url, issue } = await start();
  const { status } = await issue();
  // Several statements in one query are one transaction.
  await execute(url, sql);
  await expect.poll(status, FELT).toBe(401);
});

test('a database that takes the name of another one has its keys in effect within two seconds', async () => {
  const url = await createTestDatabase();
  const [name, other] = [new URL(url).pathname.slice(1), `${new URL(url).pathname.slice(1)}_other`];
  const connections = openConnections(url, () => {});
  const { key } = await createKeyStore(connections, 'by_test_', definition.scopes).create({
    name: 'x',
    plan: 'business',
  });
  await connections.close();
  const admin = await connect(new URL('/postgres', url).href);
  // A copy of the files, rows in the same places and by the same transactions
  await admin.query(`CREATE DATABASE ${other} TEMPLATE ${name} STRATEGY file_copy`);
  await execute(new URL(`/${other}`, url).href, REVOKE);
  const { useKey } = await start(url);
  const status = await useKey(key);
  await admin.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
  await until(async () => {
    await admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [name]);
    return admin.query(`ALTER DATABASE ${name} RENAME TO ${name}_lost`).then(
      () => true,
      () => undefined,
    );
  });
  await admin.query(`ALTER DATABASE ${other} RENAME TO ${name}`);
  await expect.poll(status, FELT).toBe(401);
  await admin.query(`DROP DATABASE ${name}_lost`);
});

test('a change whose transaction began before others, and ends after them, takes effect when it ends', async () => {
  const { url, issue } = await start();
  const [early, late] = [await issue(), await issue()];
  const slow = await connect(url);
  await slow.query('BEGIN');
  await slow.query(`${REVOKE} WHERE id = $1`, [early.id]);
  await execute(url, `${REVOKE} WHERE id = $1`, [late.id]);
  await expect.poll(late.status, FELT).toBe(401);
  expect(await early.status()).toBe(200);
  await slow.query('COMMIT');
  await expect.poll(early.status, FELT).toBe(401);
});

test('a key that is valid again works within two seconds, whether it was revoked or gone', async () => {
  const { url, issue } = await start();
  const { status } = await issue();
  await execute(url, 'CREATE TABLE kept AS SELECT * FROM api_keys; DELETE FROM api_keys');
  await expect.poll(status, FELT).toBe(401);
  await execute(url, `INSERT INTO api_keys SELECT * FROM kept; ${REVOKE}`);
  await expect.poll(status, FELT).toBe(401);
  await execute(url, 'UPDATE api_keys SET revoked_at = NULL');
  await expect.poll(status, FELT).toBe(200);
});

test('another value in any column of a key that requests read is a change, and the same row written or moved again is none', async () => {
  const url = await createTestDatabase();
  const connections = openConnections(asService(url), () => {});
  onTestFinished(() => connections.close());
  const store = createKeyStore(connections, 'by_test_', definition.scopes);
  const columns = await execute<{ name: string }>(
    url,
    `SELECT attname AS name FROM pg_attribute WHERE attrelid = 'api_keys'::regclass AND attnum > 0 AND NOT attisdropped`,
  );
  expect(Object.keys(COLUMN_CHANGES).sort()).toEqual(columns.map(({ name }) => name).sort());
  const limits = { plan: 'enterprise', perMinute: 1, perDay: 1 } as const;
  // Only bills read it.
  const { past_owners: _, ...ofRequests } = COLUMN_CHANGES;
  for (const [column, [value]] of Object.entries(ofRequests)) {
    const { apiKey } = await store.create({ name: 'x', owner: 'acme', ...limits });
    const rotated = await rotate(store, apiKey.id, new Date('2030-01-01T00:00:00Z'));
    const read = () => store.findByHashes([hashKey(rotated?.key ?? '')]);
    const [found = expect.unreachable()] = await read();
    await execute(url, 'UPDATE api_keys SET name = name');
    await execute(url, 'VACUUM FULL api_keys');
    expect(await store.findChanged([found]), column).toEqual([]);
    await execute(url, `UPDATE api_keys SET ${column} = ${value} WHERE id = $1`, [apiKey.id]);
    expect(await store.findChanged([found]), column).toEqual([apiKey.id]);
    await execute(url, 'DELETE FROM api_keys');
  }
});

test('a key in use is not looked up again while nothing changes', async () => {
  const { service } = await start();
  const call = createCaller(service);
  const read = async (statement: string) => {
    const text = await (await fetch(`${service.url}/metrics`)).text();
    const [, count] =
      new RegExp(`boatyard_database_query_duration_seconds_count{statement="${statement}"} (\\d+)`).exec(
        text,
      ) ?? [];
    return Number(count ?? 0);
  };
  await call(list.path);
  // A busy machine may answer a check late, after which a key is looked up again. One stretch without a lookup is enough:
  // three checks take two seconds, and a key that was trusted for a shorter time would be looked up meanwhile.
  await until(async () => {
    const [lookups, checks] = [await read('keys-find-by-hashes'), await read('keys-find-changed')];
    await until(async () => {
      expect((await call(list.path)).status).toBe(200);
      return (await read('keys-find-changed')) >= checks + 3 ? true : undefined;
    });
    return (await read('keys-find-by-hashes')) === lookups ? true : undefined;
  }, 60_000);
});
