import { AsyncLocalStorage } from 'node:async_hooks';
import { execute } from '@animal-store/platform/testing';
import pg from 'pg';
import { expect, onTestFinished, test, vi } from 'vitest';
import { create, insertSql, list, TABLE } from '#operations-under-test';
import { createKeyStatements } from '../../src/keys/statements.js';
import { onEveryConnection } from '../support/every-connection.js';
import { explainPrepared } from '../support/explain.js';
import { useService } from '../support/test-service.js';

const { service } = useService();

test('PostgreSQL plans a statement of the stores once, however often it runs', async () => {
  const { items, keys, serviceDatabase } = service;
  const body = { ...create.body, ...list.filter };
  for (let run = 0; run < 10; run += 1) {
    const { id } = await items.create(body);
    await Promise.all([body, body, body].map((each) => items.create(each)));
    await items.get(id);
    await Promise.all([id, id, id].map((each) => items.get(each)));
    await items.list({ limit: 20 });
    await items.list({ limit: 20, ...list.filter });
    await keys.findByHashes([new Uint8Array(32)]);
    await keys.findChanged([]);
  }
  const statement = {
    name: 'read-plans',
    text: `SELECT name, custom_plans::int FROM pg_prepared_statements
      WHERE generic_plans > 1 AND name <> 'read-plans' ORDER BY name`,
  };
  /** On all connections of a pool: which of them ran a statement is open. */
  const read = async (name: 'reads' | 'writes' | 'keys') => {
    const { pool } = serviceDatabase[name];
    const found = await onEveryConnection(pool, (client) => client.query(statement));
    const plans = new Map(found.flatMap(({ rows }) => rows.map((row) => [row.name, row.custom_plans])));
    return [...plans].sort();
  };
  expect(await read('reads')).toEqual([
    [`${TABLE}-get`, 0],
    [`${TABLE}-get-all`, 0],
    [`${TABLE}-list`, 0],
    [`${TABLE}-list-by-${list.filterName}`, 0],
  ]);
  expect(await read('writes')).toEqual([[`${TABLE}-create`, 0]]);
  expect(await read('keys')).toEqual([
    ['keys-find-by-hashes', 0],
    ['keys-find-changed', 0],
  ]);
});

const withoutValues = (sql: string) => sql.replaceAll(/\$\d+|'\[\]'|'\{\}'/g, '?');

test('readiness tries every named statement that the service runs', async () => {
  const { items, keys, serviceDatabase } = service;
  const tried = new AsyncLocalStorage<string[]>();
  const used = new Map<string, string>();
  const { query: send } = pg.Client.prototype;
  const spy = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (
    this: pg.Client,
    ...args: unknown[]
  ) {
    const [query] = args as [string | { name?: string; text?: string }];
    const { name, text = '' } = typeof query === 'string' ? { text: query } : query;
    // Those that are only planned are sent together, with values in place of their parameters.
    const plans = text.split(';').map((each) => withoutValues(each.replace('EXPLAIN ', '')));
    tried.getStore()?.push(withoutValues(text), ...plans);
    if (name !== undefined && name !== 'name-test') used.set(name, withoutValues(text));
    return Reflect.apply(send, this, args);
  });
  onTestFinished(() => spy.mockRestore());
  const body = { ...create.body, ...list.filter };
  const { id } = await items.create(body);
  await items.get(id);
  await Promise.all([id, id].map((each) => items.get(each)));
  await items.list({ limit: 20 });
  await items.list({ limit: 20, ...list.filter });
  await items.list({ limit: 20, order: 'newest' });
  await keys.findByHashes([new Uint8Array(32)]);
  await keys.findChanged([]);
  const texts: string[] = [];
  await tried.run(texts, () => serviceDatabase.checkStatements());
  expect([...used].filter(([, text]) => !texts.includes(text))).toEqual([]);
});

test('a plan made for a small table does not scan one that has grown', async () => {
  const { items, database, serviceDatabase } = service;
  const { id } = await items.create({ ...create.body, ...list.filter });
  await database.pool.query(`ANALYZE ${TABLE}`);
  await items.list({ limit: 20 });
  await items.list({ limit: 20, ...list.filter });
  await items.get(id);
  await Promise.all([id, id, id].map((each) => items.get(each)));
  // Not by the service's pool, whose statements end after 1.2 s.
  await execute(service.databaseUrl, `${insertSql("'Item ' || n")} FROM generate_series(1, 20000) AS n`);
  const explain = (name: string, values: string) =>
    explainPrepared(serviceDatabase.reads.pool, `${TABLE}-${name}`, values);
  const [value] = Object.values(list.filter);
  const filtered = await explain(`list-by-${list.filterName}`, `'{1}', '{20}', '{${value}}'`);
  expect(filtered).toContain(`Index Scan using ${TABLE}_${list.filterName}_id_idx`);
  expect(await explain('list', "'{1}', '{20}'")).toContain(`Index Scan using ${TABLE}_pkey`);
  expect(await explain('get', '1')).not.toContain('Seq Scan');
  expect(await explain('get-all', "'{1}'")).not.toContain('Seq Scan');
});

test('a create with an Idempotency-Key looks its key up, however many there are, in a plan made for few or for many', async () => {
  const { items, keys, databaseUrl, serviceDatabase } = service;
  const [apiKey] = await keys.list();
  const createKeyed = (value: string) =>
    items.create(create.body, {
      apiKeyId: apiKey?.id ?? '',
      value,
      operation: create.name,
      batchIndex: 0,
      bodyHash: new Uint8Array(32),
    });
  const explain = () => explainPrepared(serviceDatabase.writes.pool, `${TABLE}-create-keyed`, "'[]'");
  const byKey = /Index (?:Only )?Scan using idempotent_creates_pkey[^\n]*\n\s*Index Cond: [^\n]*api_key_id/;
  await createKeyed('few');
  expect(await explain()).toMatch(byKey);
  await execute(
    databaseUrl,
    `INSERT INTO idempotent_creates (api_key_id, key, operation, batch_index, body_hash, response)
     SELECT gen_random_uuid(), 'key-' || n, '${create.name}', 0, sha256(''), '{}' FROM generate_series(1, 20000) AS n`,
  );
  await execute(databaseUrl, 'ANALYZE idempotent_creates');
  await createKeyed('many');
  const plan = await explain();
  expect(plan).toMatch(byKey);
  expect(plan).not.toContain('hashed SubPlan');
});

test('a scrape of the metrics does not scan all keys', async () => {
  const { databaseUrl, database } = service;
  await execute(
    databaseUrl,
    `INSERT INTO api_keys (name, hash, hint, plan, banned_until, expires_at)
     SELECT 'Key ' || n, sha256(n::text::bytea), 'by_test_0000', 'pro', expiry, expiry
     FROM (SELECT n, CASE WHEN n % 100 = 0 THEN now() + n * interval '1 h' END AS expiry
       FROM generate_series(1, 5000) AS n) AS keys`,
  );
  await execute(databaseUrl, 'ANALYZE api_keys');
  const explain = async (sql: string, ...moments: Date[]) =>
    JSON.stringify((await database.pool.query(`EXPLAIN ${sql}`, moments)).rows);
  const { countBanned, countExpiring } = createKeyStatements(database.inSchema);
  const now = new Date();
  const banned = await explain(countBanned, now);
  expect(banned).toMatch(/Index Scan (?:using|on) api_keys_banned_until_idx/);
  const expiring = await explain(countExpiring, now, new Date(now.getTime() + 86_400_000));
  expect(expiring).toMatch(/Index Scan (?:using|on) api_keys_expires_at_idx/);
  expect(banned + expiring).not.toContain('Seq Scan');
});
