import { afterAll, beforeAll, expect, test } from 'vitest';
import { startService, type TestService } from '../support/test-service.js';

let service: TestService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

test('PostgreSQL plans a statement of the stores once, however often it runs', async () => {
  const { pets, keys, database } = service;
  const newPet = { name: 'Rex', categoryId: 1, status: 'sold' } as const;
  for (let run = 0; run < 10; run += 1) {
    const { id } = await pets.create(newPet);
    await Promise.all([newPet, newPet, newPet].map((each) => pets.create(each)));
    await pets.get(id);
    await Promise.all([id, id, id].map((each) => pets.get(each)));
    await pets.list({ limit: 20 });
    await pets.list({ limit: 20, status: 'sold' });
    await keys.findByHashes([new Uint8Array(32)]);
  }
  const statement = {
    name: 'read-plans',
    text: `SELECT name, custom_plans::int FROM pg_prepared_statements
      WHERE generic_plans > 1 AND name <> 'read-plans' ORDER BY name`,
  };
  const read = async (pool: 'reads' | 'writes' | 'keys') => database[pool].query(statement, []);
  expect(await read('reads')).toEqual([
    { name: 'pets-get', custom_plans: 0 },
    { name: 'pets-get-all', custom_plans: 0 },
    { name: 'pets-list', custom_plans: 0 },
    { name: 'pets-list-by-status', custom_plans: 0 },
  ]);
  expect(await read('writes')).toEqual([{ name: 'pets-create', custom_plans: 0 }]);
  expect(await read('keys')).toEqual([{ name: 'keys-find-by-hashes', custom_plans: 0 }]);
});

test('a plan made for a small table does not scan one that has grown', async () => {
  const { pets, database } = service;
  const { id } = await pets.create({ name: 'Rex', categoryId: 1, status: 'sold' });
  await database.pool.query('ANALYZE pets');
  await pets.list({ limit: 20 });
  await pets.list({ limit: 20, status: 'sold' });
  await pets.get(id);
  await Promise.all([id, id, id].map((each) => pets.get(each)));
  await database.pool.query(`INSERT INTO pets (name, category_id, status)
    SELECT 'Pet ' || n, 1, 'available' FROM generate_series(1, 20000) AS n`);
  const explain = async (call: string) => {
    const rows = await database.reads.query({ name: call, text: `EXPLAIN EXECUTE ${call}` }, []);
    return rows.map((row) => row['QUERY PLAN']).join('\n');
  };
  const status = await explain(`"pets-list-by-status" ('{1}', '{20}', '{sold}')`);
  expect(status).toContain('Index Scan using pets_status_id_idx');
  const all = await explain(`"pets-list" ('{1}', '{20}', '{NULL}')`);
  expect(all).toContain('Index Scan using pets_pkey');
  expect(await explain('"pets-get" (1)')).not.toContain('Seq Scan');
  expect(await explain(`"pets-get-all" ('{1}')`)).not.toContain('Seq Scan');
});
