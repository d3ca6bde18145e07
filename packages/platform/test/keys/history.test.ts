import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { createCaller, execute } from '@animal-store/platform/testing';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { definition, list } from '#operations-under-test';
import { createKeyHistoryStore, type KeyHistoryStore } from '../../src/keys/history.js';
import { listGrants } from '../../src/migrations/grants.js';
import { COLUMN_CHANGES, NEW_ID } from '../support/key-columns.js';
import { runInProcess, runKeys } from '../support/process.js';
import { rotate } from '../support/rotate.js';
import { findServers } from '../support/service-role.js';
import { startService, useService } from '../support/test-service.js';

let history: KeyHistoryStore;
/** May log in, and has the grants that its test gives it */
const desk = `desk_${randomBytes(4).toString('hex')}`;
let deskUrl: string;

const { service } = useService();

beforeAll(async () => {
  history = createKeyHistoryStore(service.serviceDatabase);
  await execute(service.databaseUrl, `CREATE ROLE ${desk} LOGIN PASSWORD '${desk}'`);
  deskUrl = Object.assign(new URL(service.databaseUrl), { username: desk, password: desk }).href;
});
afterAll(async () => {
  await execute(service.databaseUrl, `DROP OWNED BY ${desk}; DROP ROLE ${desk}`);
});

const sql = (text: string, values?: unknown[]) => execute(service.databaseUrl, text, values);

/** A key whose columns can all be changed one by one: of the plan with limits, and rotated. */
async function createKey() {
  const limits = { plan: 'enterprise', perMinute: 1, perDay: 1 } as const;
  const { apiKey } = await service.keys.create({ name: 'audited', owner: 'acme', ...limits });
  await rotate(service.keys, apiKey.id, new Date('2030-01-01T00:00:00Z'));
  return apiKey.id;
}

/** The newest changes of a key, without what differs from run to run. */
async function readNewest(id: string, count: number) {
  const changes = await history.read({ id });
  return changes.slice(-count).map(({ column, oldValue, newValue }) => [column, oldValue, newValue]);
}

test('every column of a key has its change by SQL on record, with both values, whatever the session has set', async () => {
  const columns = await execute<{ name: string; type: string }>(
    service.databaseUrl,
    `SELECT attname AS name, atttypid::regtype::text AS type FROM pg_attribute
     WHERE attrelid = 'api_keys'::regclass AND attnum > 0 AND NOT attisdropped`,
  );
  const types = Object.fromEntries(columns.map(({ name, type }) => [name, type]));
  expect(Object.keys(COLUMN_CHANGES).sort()).toEqual(Object.keys(types).sort());
  for (const [column, [value, newValue]] of Object.entries(COLUMN_CHANGES)) {
    const id = await createKey();
    // As JSON shows it in UTC, which is what connections of the service are set to
    const { rows } = await service.database.pool.query(
      `SELECT to_jsonb(api_keys) ->> $2 AS value FROM api_keys WHERE id = $1`,
      [id, column],
    );
    await sql(`
      SET DateStyle = 'SQL, DMY'; SET TimeZone = 'Asia/Kolkata'; SET bytea_output = 'escape'; SET search_path = '';
      SET application_name = 'somebody''s script';
      UPDATE public.api_keys SET ${column} = ${value} WHERE id = '${id}'`);
    const changes = (await history.read({ id })).filter((change) => change.column === column);
    expect(Math.abs(Number(changes.at(-1)?.changedAt) - Date.now()), column).toBeLessThan(60_000);
    const isHash = types[column] === 'bytea';
    expect(newValue === 'changed', column).toBe(isHash);
    expect(changes.at(-1), column).toMatchObject({
      id,
      column,
      newValue,
      oldValue: isHash ? null : rows[0]?.value,
      applicationName: "somebody's script",
    });
    expect(JSON.stringify(await history.read({ id }))).not.toMatch(/(?:07){8}|(?:08){8}|\\\\x/);
    if (column === 'id') {
      expect(await readNewest(NEW_ID, 1)).toEqual([['id', id, NEW_ID]]);
      await sql('DELETE FROM api_keys WHERE id = $1', [NEW_ID]);
    }
    await sql('DELETE FROM api_keys WHERE id = $1', [id]);
  }
});

test('a key that is created, deleted or truncated is on record as a whole, without its hashes', async () => {
  const id = await createKey();
  const [created] = await history.read({ id });
  expect(created).toMatchObject({ column: null, oldValue: null, name: 'audited' });
  expect(JSON.parse(created?.newValue ?? '')).toMatchObject({ id, owner: 'acme', plan: 'enterprise' });
  await sql('DELETE FROM api_keys WHERE id = $1', [id]);
  const deleted = (await history.read({ id })).at(-1);
  expect(deleted).toMatchObject({ column: null, newValue: null, name: null });
  expect(JSON.parse(deleted?.oldValue ?? '')).toMatchObject({ id, owner: 'acme' });
  for (const { oldValue, newValue } of await history.read({ id }))
    expect(`${oldValue}${newValue}`).not.toMatch(/"(?:previous_)?hash"/);

  const other = await startService();
  onTestFinished(() => other.close());
  const { apiKey } = await other.keys.create({ name: 'truncated', plan: 'free' });
  await execute(other.databaseUrl, 'TRUNCATE api_keys CASCADE');
  const records = await createKeyHistoryStore(other.serviceDatabase).read({ id: apiKey.id });
  expect(records.at(-1)).toMatchObject({ column: null, newValue: null });
  expect(JSON.parse(records.at(-1)?.oldValue ?? '')).toMatchObject({ name: 'truncated' });
});

test('a change that is rolled back, or changes nothing, is not on record, and several columns have one time', async () => {
  const id = await createKey();
  const before = (await history.read({ id })).length;
  await sql(`BEGIN; UPDATE api_keys SET name = 'x' WHERE id = '${id}'; ROLLBACK;`);
  await sql('UPDATE api_keys SET name = name, revoked_at = revoked_at WHERE id = $1', [id]);
  expect(await history.read({ id })).toHaveLength(before);
  await sql(`UPDATE api_keys SET banned_until = now(), ban_seconds = 300, name = 'y' WHERE id = $1`, [id]);
  const changes = (await history.read({ id })).slice(before);
  expect(changes.map(({ column }) => column)).toEqual(['ban_seconds', 'banned_until', 'name']);
  expect(new Set(changes.map(({ changedAt }) => changedAt.getTime())).size).toBe(1);
});

test('the documented grants of a support desk are enough to end and name keys and lift bans, and not for hashes, plans, limits and scopes', async () => {
  const documented = readFileSync('docs/database.md', 'utf8');
  const [, block = ''] = /```sql\n((?:GRANT [^\n]* TO desk;[^\n]*\n)+)```/.exec(documented) ?? [];
  // Of the tables that every store has
  const isOfPlatform = (line: string) =>
    Object.keys(listGrants(definition.identity.grants).service).some((table) =>
      new RegExp(`ON (?:\\w+, )*${table}\\b`).test(line),
    );
  const grants = block.split('\n').filter(isOfPlatform).join('\n');
  await sql(grants.replaceAll('TO desk;', `TO ${desk};`));
  onTestFinished(async () => void (await sql(`DROP OWNED BY ${desk}`)));
  const id = await createKey();
  const isAllowed = (set: string) =>
    execute(deskUrl, `UPDATE api_keys SET ${set} WHERE id = '${id}'`).then(
      () => true,
      ({ message }: Error) => !/permission denied/.test(message),
    );
  for (const set of [
    'revoked_at = now()',
    "name = 'x', owner = 'y'",
    'banned_until = null, ban_seconds = null',
  ])
    expect([set, await isAllowed(set)]).toEqual([set, true]);
  const forOthers = ['hash', 'previous_hash', 'hint', 'plan', 'per_minute', 'per_day', 'scopes'];
  for (const column of forOthers)
    expect([column, await isAllowed(`${column} = ${column}`)]).toEqual([column, false]);
  expect((await history.read({ id })).at(-1)?.sessionRole).toBe(desk);
});

test('behind SET ROLE, both the role that has logged in and the one whose rights it uses are on record', async () => {
  const id = await createKey();
  await sql(`
    GRANT SELECT, UPDATE ON api_keys TO ${desk};
    GRANT INSERT ON api_key_history TO ${desk}`);
  const change = `UPDATE api_keys SET name = name || '!' WHERE id = '${id}'`;
  await execute(deskUrl, change);
  await sql(`SET ROLE ${desk}; ${change}`);
  const owner = decodeURIComponent(new URL(service.databaseUrl).username);
  const roles = (await history.read({ id })).slice(-2).map((each) => [each.sessionRole, each.activeRole]);
  expect(roles).toEqual([
    [desk, desk],
    [owner, desk],
  ]);
});

test("a ban of the service's own is on record with its role and application_name", async () => {
  const limits = { plan: 'enterprise', perMinute: 2, perDay: 50 } as const;
  const { key, apiKey } = await service.keys.create({ name: 'greedy', ...limits });
  const call = createCaller({ url: service.url, key });
  for (let n = 0; n < 4; n += 1) await call(list.path);
  const bans = async () =>
    (await history.read({ id: apiKey.id })).filter(({ column }) => column === 'ban_seconds');
  await expect
    .poll(bans)
    .toMatchObject([
      { sessionRole: findServers().serviceRole.name, applicationName: 'boatyard', newValue: '300' },
    ]);
});

test('keys history shows the changes of a key by the command line, which names the command and who runs it', async () => {
  const environment = { DATABASE_URL: service.databaseUrl };
  const { id } = await runKeys(environment, 'create', '--name', 'shop', '--plan', 'free', '--owner', 'acme');
  await runKeys(environment, 'set-plan', id, '--plan', 'pro');
  const changes = await runKeys(environment, 'history', id.slice(0, 13));
  const by = (command: string) => `boatyard keys ${command} by `;
  expect(changes).toMatchObject([
    { id, name: 'shop', column: null, applicationName: expect.stringContaining(by('create')) },
    { column: 'plan', oldValue: 'free', newValue: 'pro', sessionRole: findServers().serviceRole.name },
  ]);
  expect(changes[1].applicationName.startsWith(by('set-plan'))).toBe(true);
  expect(`${changes[1].applicationName}`).toContain(`@${hostname()}`.slice(0, 10));

  await sql('DELETE FROM api_keys WHERE id = $1', [id]);
  const gone = await runInProcess(['keys', 'history', id], environment);
  expect(gone.code).toBe(0);
  expect(gone.output).toMatch(/^TIME \(UTC\) .*\n.* created .*\n.* plan +free +pro\n.* deleted .*\n$/);
});

test('keys history shows the changes of all keys for 7 days, or as far back as --since says, and knows which ids are unknown', async () => {
  const own = await startService();
  onTestFinished(() => own.close());
  const environment = { DATABASE_URL: own.databaseUrl };
  const { apiKey } = await own.keys.create({ name: 'old', plan: 'free' });
  await execute(
    own.databaseUrl,
    `UPDATE api_key_history SET changed_at = now() - interval '8 days' WHERE api_key_id = $1`,
    [apiKey.id],
  );
  const names = (changes: readonly { name: string }[]) => changes.map(({ name }) => name);
  expect(names(await runKeys(environment, 'history'))).toEqual(['test']);
  expect(names(await runKeys(environment, 'history', '--since', '9d'))).toEqual(['old', 'test']);
  const unknown = await runInProcess(['keys', 'history', 'ffffffff-0000'], environment);
  expect(unknown).toEqual({ code: 3, output: expect.stringMatching(/no key with the id/) });
});
