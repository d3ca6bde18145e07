import { beforeAll, expect, test } from 'vitest';
import { openConnections } from '../../../src/platform/database/connections.js';
import { createInsert } from '../../../src/platform/database/inserts.js';
import { isDatabaseOutage } from '../../../src/platform/database/outage.js';
import { addSampleData } from '../../../src/platform/database/source.js';
import { table } from '../../../src/platform/database/table.js';
import { issueRefusedKeys, type RefusedKeys, runEveryOperation } from '../../support/every-operation.js';
import { execute } from '../../support/execute.js';
import { list, otherList } from '../../support/operations-under-test.js';
import { createTestDatabase, startService, type TestService } from '../../support/test-service.js';

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
  await addSampleData(service.database);
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

/** What PgBouncer keeps for each client, by what the rest of the session is to be */
const UNREADABLE = ["datestyle = 'German'", "datestyle = 'Postgres, DMY'", "timezone = 'America/St_Johns'"];
const READABLE = [
  'array_nulls = off',
  'extra_float_digits = -15',
  'bytea_output = escape',
  "search_path = ''",
  'standard_conforming_strings = off',
  'transform_null_equals = on',
];

test('settings that change between statements, as behind a pooler, change nothing', async () => {
  await withService(async (service) => {
    setBeforeEachStatement(service, READABLE.map((setting) => `SET ${setting}`).join('; '));
    expect(await runEveryOperation(service, refused)).toEqual(expected);
  });
});

test.each(UNREADABLE)(
  '%s, if no pooler keeps that: what Prisma reads is a 503, and all else goes on',
  async (setting) => {
    await withService(async (service) => {
      setBeforeEachStatement(service, `SET ${setting}`);
      const found = await runEveryOperation(service, refused);
      const answers = expected.answers.map((answer) =>
        answer.path.startsWith(otherList.path)
          ? { path: answer.path, status: 503, body: expect.objectContaining({ code: 'service_unavailable' }) }
          : answer,
      );
      expect(found).toEqual({ ...expected, answers });
    });
  },
);

test('a date that cannot be read is an outage with a line in the log, and never none', async () => {
  const { pool, close } = openConnections(databaseUrl, () => {});
  const client = await pool.connect();
  await client.query("SET datestyle = 'German'");
  for (const type of ['date', 'timestamp', 'timestamptz']) {
    const failed = await client.query(`SELECT '2026-11-25'::${type} AS at`).catch((error: unknown) => error);
    expect([isDatabaseOutage(failed), String(failed)]).toEqual([true, expect.stringContaining('25.11.2026')]);
  }
  // The connection is as good as before.
  expect((await client.query('SELECT NULL::date AS none, 1 AS one')).rows).toEqual([{ none: null, one: 1 }]);
  client.release();
  await close();
});

test('a null in an array is stored as null, or not at all where it would become the text NULL', async () => {
  await execute(
    databaseUrl,
    `CREATE TABLE notes (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, text text);
     GRANT ALL ON notes TO PUBLIC`,
  );
  const notes = table<{ id: number; text: string | null }, { text: string | null }>('notes', {
    id: 'bigint',
    text: 'text',
  });
  await withService(async (service) => {
    const insert = createInsert(service.serviceDatabase, notes);
    expect(await insert({ text: null })).toMatchObject({ output: { id: 1, text: null } });
    setBeforeEachStatement(service, 'SET array_nulls = off');
    expect(await insert({ text: 'NULL' })).toMatchObject({ output: { id: 2, text: 'NULL' } });
    expect(isDatabaseOutage(await insert({ text: null }).catch((error: unknown) => error))).toBe(true);
  });
  expect(await execute(databaseUrl, 'SELECT text FROM notes ORDER BY id')).toEqual([
    { text: null },
    { text: 'NULL' },
  ]);
});
