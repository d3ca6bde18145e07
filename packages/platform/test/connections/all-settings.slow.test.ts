import { afterAll, beforeAll, expect, test } from 'vitest';
import { definition } from '#operations-under-test';
import { addSampleData } from '../../src/database/open-database.js';
import { issueRefusedKeys, type RefusedKeys, runEveryOperation } from '../support/every-operation.js';
import { PostgresServer } from '../support/postgres-server.js';
import { startService } from '../support/test-service.js';

/** Settings whose effect is their purpose, or that have no value to try. */
const EXCLUDED: Readonly<Record<string, string>> = {
  default_transaction_read_only:
    'creates are a 503 then, as packages/platform/test/connections/unavailable.test.ts shows',
  transaction_read_only: 'the same, of the running transaction',
  exit_on_error: 'ends sessions, which the outage tests do',
};
/** Texts, whose values PostgreSQL does not list. All others name roles, files, libraries, spaces or languages of messages. */
const TEXTS: Readonly<Record<string, string>> = {
  DateStyle: 'German',
  TimeZone: 'America/St_Johns',
  search_path: '',
  client_encoding: 'LATIN1',
  lc_numeric: 'C',
  lc_time: 'C',
  lc_monetary: 'C',
  lc_messages: 'C',
  default_text_search_config: 'pg_catalog.simple',
};
/** In place of the least value, which would end the very question for the settings. */
const NUMBERS: Readonly<Record<string, string>> = {
  statement_timeout: '1s',
  transaction_timeout: '1s',
  lock_timeout: '1ms',
  idle_session_timeout: '1s',
  idle_in_transaction_session_timeout: '1ms',
};

interface Setting {
  readonly name: string;
  readonly setting: string;
  readonly vartype: 'bool' | 'enum' | 'integer' | 'real' | 'string';
  readonly min_val: string | null;
  readonly max_val: string | null;
  readonly enumvals: readonly string[] | null;
}

let server: PostgresServer;
let settings: Setting[];
let refused: RefusedKeys;
let expected: Awaited<ReturnType<typeof runEveryOperation>>;

const runAll = async () => {
  const service = await startService({ databaseUrl: server.url });
  return runEveryOperation(service, refused).finally(() => service.close());
};

beforeAll(async () => {
  server = await PostgresServer.start();
  settings = await server.query<Setting>(`
    SELECT name, setting, vartype, min_val, max_val, enumvals FROM pg_settings
    WHERE context IN ('user', 'superuser') ORDER BY name`);
  const service = await startService({ databaseUrl: server.url });
  await addSampleData(definition, service.database);
  refused = await issueRefusedKeys(service);
  expected = await runEveryOperation(service, refused);
  await service.close();
});
afterAll(() => server.close());

/** Other values than that of now. */
function otherValues({ name, setting, vartype, min_val, max_val, enumvals }: Setting): string[] {
  if (vartype === 'bool') return [setting === 'on' ? 'off' : 'on'];
  if (vartype === 'enum') return (enumvals ?? []).filter((value) => value !== setting);
  if (vartype === 'string') return name in TEXTS ? [TEXTS[name] ?? ''] : [];
  return [NUMBERS[name] ?? (setting === min_val ? max_val : min_val) ?? ''];
}

/** In how many groups values are tried; those of a group that fails, one by one. */
const GROUPS = 30;

test('no setting of the database that PostgreSQL has changes what any operation answers or stores', async ({
  annotate,
}) => {
  const failed: Record<string, unknown> = {};
  const impossible = new Set<string>();
  const works = async (group: readonly string[]): Promise<boolean> => {
    for (const set of group)
      await server.query(`ALTER DATABASE boatyard SET ${set}`).catch(() => impossible.add(set));
    // A busy machine may take longer to open a connection than a request may wait.
    const attempt = () => runAll().catch(runAll);
    try {
      expect(await attempt()).toEqual(expected);
      return true;
    } catch (error) {
      if (group.length === 1) failed[group.join()] = String(error);
      return false;
    } finally {
      await server.query('ALTER DATABASE boatyard RESET ALL');
    }
  };
  const values = settings
    .filter(({ name }) => !(name in EXCLUDED))
    .flatMap((each) => otherValues(each).map((value) => `${each.name} = '${value}'`));
  for (let index = 0; index < GROUPS; index += 1) {
    // Values of one setting, which follow each other, are in different groups.
    const group = values.filter((_, n) => n % GROUPS === index);
    if (await works(group)) continue;
    const alone = [];
    for (const set of group) alone.push(await works([set]));
    if (!alone.includes(false)) failed[group.join()] = 'only together';
  }
  await annotate(`${values.length} values tried; not possible: ${[...impossible].join(', ')}`);
  expect(failed).toEqual({});
  expect(values.length).toBeGreaterThan(100);
  expect(impossible.size).toBeLessThan(10);
}, 600_000);

test('settings that the server reads again while the service runs change nothing', async () => {
  const service = await startService({ databaseUrl: server.url });
  try {
    expect(await runEveryOperation(service, refused)).toEqual(expected);
    for (const [name, value] of [
      ['datestyle', 'German'],
      ['timezone', 'America/St_Johns'],
      ['array_nulls', 'off'],
      ['extra_float_digits', '-15'],
    ])
      await server.query(`ALTER SYSTEM SET ${name} = '${value}'`);
    await server.reload();
    expect(await runEveryOperation(service, refused)).toEqual(expected);
  } finally {
    await server.query('ALTER SYSTEM RESET ALL');
    await server.reload();
    await service.close();
  }
});
