import { createCaller } from '@animal-store/platform/testing';
import { expect, test } from 'vitest';
import { definition, list, otherList } from '#operations-under-test';
import { formatKey, formatKeys, toKeyJson } from '../../src/cli/key-view.js';
import { createUsageStore } from '../../src/usage/store.js';
import { useService } from '../support/test-service.js';

/** Values that PostgreSQL accepts for each type, and that the service might not expect. */
const ODD_VALUES: Record<string, readonly string[]> = {
  timestamptz: [
    "'infinity'",
    "'-infinity'",
    "'294276-12-31T23:59:59Z'",
    "'10000-01-01T00:00:00Z'",
    "'9999-12-31T23:59:59.999Z'",
    "'0001-01-01T00:00:00Z'",
    "'4713-01-01T00:00:00Z BC'",
    'now()',
    'NULL',
  ],
  int4: ['2147483647', '-2147483648', '0', '-1', '1', '86400', '86401', 'NULL'],
  text: ["''", "' '", "repeat('x', 100000)", String.raw`E'a\nb\t\x01"'`, "'😀'", 'NULL'],
  _text: [
    "'{}'",
    `'{{${list.scope}}}'`,
    "'{NULL}'",
    `'{${list.scope},NULL}'`,
    `'{${list.scope},${list.scope}}'`,
    `'[5:5]={${list.scope}}'`,
    `'{${otherList.scope}}'`,
    "'{unknown}'",
    'NULL',
  ],
  bytea: ["''", "'\\x00'", "decode(repeat('00', 32), 'hex')", "decode(repeat('00', 33), 'hex')", 'NULL'],
  plan: ["'free'", "'enterprise'", 'NULL'],
  jsonb: [
    "'{}'",
    "'[]'",
    `'"x"'`,
    "'null'",
    `'{"": "x", "later": 1, "2026-01-31": {"x": []}, "2026-01-15": null}'`,
    'NULL',
  ],
  uuid: ['gen_random_uuid()', "'00000000-0000-0000-0000-000000000000'", 'NULL'],
};

const { service } = useService();

test('no value that PostgreSQL accepts in a column of a key fails a request or a command', async () => {
  const { rows: columns } = await service.database.pool.query<{ name: string; type: string }>(
    "SELECT column_name AS name, udt_name AS type FROM information_schema.columns WHERE table_name = 'api_keys'",
  );
  expect(columns.length).toBeGreaterThan(10);
  let accepted = 0;
  for (const { name, type } of columns) {
    const values = ODD_VALUES[type];
    if (values === undefined) throw new Error(`Give ODD_VALUES some values of type ${type}, for ${name}`);
    for (const value of values) {
      const plan = { plan: 'enterprise', perMinute: 100, perDay: 100 } as const;
      const { key, apiKey } = await service.keys.create({ name: 'odd', expiresAt: null, ...plan });
      const update = `UPDATE api_keys SET "${name}" = ${value} WHERE id = '${apiKey.id}' RETURNING id`;
      const { rows = [] } = await service.database.pool.query(update).catch(() => ({ rows: [] }));
      if (rows.length === 0) continue;
      accepted += 1;
      const call = createCaller({ ...service, key });
      const what = `${name} = ${value}`;
      for (const path of [list.path, otherList.path, list.trpc]) {
        const { status } = await call(path);
        expect([200, 401, 403, 429], what).toContain(status);
      }
      const stored = await service.keys.find(rows[0].id);
      if (stored === undefined) throw new Error(`${what}: not found`);
      expect(formatKey(definition, stored, Date.now()), what).toContain(stored.id);
      expect(JSON.stringify(toKeyJson(definition, stored, Date.now())), what).toContain(stored.id);
    }
  }
  expect(accepted).toBeGreaterThan(20);
  await service.database.pool.query(
    `INSERT INTO api_key_usage SELECT id, '2026-01-15', '${list.name}', 1 FROM api_keys`,
  );
  const january = { from: '2026-01-01', to: '2026-01-31' };
  expect(await createUsageStore(service.serviceDatabase).readOwners(january)).not.toEqual([]);
  const all = await service.keys.list();
  expect(formatKeys(definition, all, Date.now()).split('\n').length).toBeGreaterThan(accepted);
  expect((await fetch(`${service.url}/metrics`)).status).toBe(200);
});

test('a key that a trigger leaves out is not handed out', async () => {
  await service.database.pool.query(`
    CREATE FUNCTION leave_out() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
    CREATE TRIGGER leave_out BEFORE INSERT ON api_keys FOR EACH ROW WHEN (NEW.name = 'unwanted')
      EXECUTE FUNCTION leave_out()`);
  await expect(service.keys.create({ name: 'unwanted', plan: 'free' })).rejects.toThrow(
    /not stored: a trigger/,
  );
});
