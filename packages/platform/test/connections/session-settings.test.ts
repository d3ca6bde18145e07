import { execute } from '@animal-store/platform/testing';
import { beforeAll, expect, test } from 'vitest';
import { definition, list } from '#operations-under-test';
import { addSampleData } from '../../src/database/open-database.js';
import { createInsert } from '../../src/tables/inserts.js';
import { table } from '../../src/tables/table.js';
import { issueRefusedKeys, type RefusedKeys, runEveryOperation } from '../support/every-operation.js';
import { createTestDatabase, startService, type TestService } from '../support/test-service.js';

/**
 * Those that would change what is read or stored. The slow test walks through all that PostgreSQL has, one by one; two of
 * these have several values that matter.
 */
const DANGEROUS = {
  datestyle: ['German', 'SQL, DMY', 'Postgres, DMY'],
  search_path: ['', 'pg_temp', 'pg_catalog'],
  timezone: ['America/St_Johns'],
  intervalstyle: ['sql_standard'],
  array_nulls: ['off'],
  bytea_output: ['escape'],
  extra_float_digits: ['-15'],
  standard_conforming_strings: ['off'],
  transform_null_equals: ['on'],
  quote_all_identifiers: ['on'],
  default_transaction_isolation: ['serializable'],
  default_transaction_deferrable: ['on'],
  lock_timeout: ['1ms'],
  statement_timeout: ['1s'],
  client_encoding: ['LATIN1'],
};

let databaseUrl: string;
let refused: RefusedKeys;
let expected: Awaited<ReturnType<typeof runEveryOperation>>;

beforeAll(async () => {
  databaseUrl = await createTestDatabase();
  const service = await startService({ databaseUrl });
  await addSampleData(definition, service.database);
  refused = await issueRefusedKeys(service);
  expected = await runEveryOperation(service, refused);
  await service.close();
});

const nameOf = (url: string) => new URL(url).pathname.slice(1);

async function withService<T>(use: (service: TestService) => Promise<T>): Promise<T> {
  const service = await startService({ databaseUrl });
  return use(service).finally(() => service.close());
}

/** What a pooler may do: each statement runs with settings that others have left behind. */
function setBeforeEachStatement({ serviceDatabase }: TestService, sql: string): void {
  const { pool, reads, writes, keys } = serviceDatabase;
  for (const each of [pool, reads.pool, writes.pool, keys.pool])
    each.on('acquire', (client) => void client.query(sql).catch(() => {}));
}

test('with the defaults, everything works, and no key is served that was ended', () => {
  expect(expected.answers.map(({ status }) => status)).toEqual([
    ...Array(5).fill(201),
    ...Array(10).fill(200),
  ]);
  expect(expected.refusals).toEqual({ revoked: 401, expired: 401, replaced: 401, banned: 429 });
  expect(expected.used).toMatchObject({ expiresAt: new Date(4e12).toJSON(), lastUsedOn: '2024-10-04' });
  expect(expected.usage).toEqual([{ day: '2024-10-04', operation: list.name, requests: 7, denied: 2 }]);
  expect([[...expected.found].sort(), expected.changed]).toEqual([Object.keys(refused).sort(), []]);
});

test.each([0, 1, 2])('settings of the database change nothing, however hostile (%i)', async (choice) => {
  for (const [name, values] of Object.entries(DANGEROUS)) {
    const value = values[choice] ?? values[0];
    await execute(databaseUrl, `ALTER DATABASE ${nameOf(databaseUrl)} SET ${name} = '${value}'`);
  }
  try {
    expect(await withService((service) => runEveryOperation(service, refused))).toEqual(expected);
  } finally {
    await execute(databaseUrl, `ALTER DATABASE ${nameOf(databaseUrl)} RESET ALL`);
  }
});

/** What no statement of the service depends on */
const HARMLESS = [
  'array_nulls = off',
  'extra_float_digits = -15',
  'bytea_output = escape',
  "search_path = ''",
  'standard_conforming_strings = off',
  'transform_null_equals = on',
];

test('settings that change between statements, as behind a pooler, change nothing', async () => {
  await withService(async (service) => {
    setBeforeEachStatement(service, HARMLESS.map((setting) => `SET ${setting}`).join('; '));
    expect(await runEveryOperation(service, refused)).toEqual(expected);
  });
});

test('a null is stored as null, and the text NULL as text, whatever array_nulls is', async () => {
  await execute(
    databaseUrl,
    `CREATE TABLE notes (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, text text);
     INSERT INTO insert_turns VALUES ('notes');
     GRANT ALL ON notes TO PUBLIC`,
  );
  const notes = table<{ id: number; text: string | null }, { text: string | null }>('notes', {
    id: 'bigint',
    text: 'text',
  });
  await withService(async (service) => {
    const insert = createInsert(service.serviceDatabase, notes);
    setBeforeEachStatement(service, 'SET array_nulls = off');
    const stored = [null, 'NULL'];
    for (const [index, text] of stored.entries())
      expect(await insert({ text })).toMatchObject({ output: { id: index + 1, text } });
  });
  expect(await execute(databaseUrl, 'SELECT text FROM notes ORDER BY id')).toEqual([
    { text: null },
    { text: 'NULL' },
  ]);
});
