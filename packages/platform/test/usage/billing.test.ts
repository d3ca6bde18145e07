import { readFileSync } from 'node:fs';
import { execute, readJson } from '@animal-store/platform/testing';
import { expect, onTestFinished, test } from 'vitest';
import { create, definition, list } from '#operations-under-test';
import { listGrants } from '../../src/migrations/grants.js';
import { runInProcess, runKeys } from '../support/process.js';
import { createTestDatabase } from '../support/test-service.js';

const JANUARY = ['--from', '2026-01-01', '--to', '2026-01-31'];

/** A database whose keys can be used and moved on days that have passed. */
async function prepare() {
  const url = await createTestDatabase();
  const environment = { DATABASE_URL: url };
  const keys = (...args: readonly string[]) => runKeys(environment, ...args);
  const issue = async (owner?: string) => {
    const issued = ['create', '--name', 'shop', '--plan', 'free'];
    return (await keys(...issued, ...(owner === undefined ? [] : ['--owner', owner]))).id as string;
  };
  const use = (id: string, day: string, requests: number, operation: string = list.name) =>
    execute(url, 'INSERT INTO api_key_usage (api_key_id, day, operation, requests) VALUES ($1, $2, $3, $4)', [
      id,
      day,
      operation,
      requests,
    ]);
  /** Moves a key today, and then takes the move for one of that day. */
  const moveOn = async (day: string, id: string, ...owner: readonly string[]) => {
    await keys('set-owner', id, ...owner);
    await execute(
      url,
      `UPDATE api_keys SET past_owners = past_owners - $2 || jsonb_build_object($3::text, past_owners -> $2) WHERE id = $1`,
      [id, today(), day],
    );
  };
  const bill = async (...args: readonly string[]) =>
    (await keys('usage', '--by', 'owner', ...JANUARY, ...args)).map(
      ({ owner, requests }: { owner: string | null; requests: number }) => [owner, requests],
    );
  return { url, environment, keys, issue, use, moveOn, bill };
}

const today = () => new Date().toISOString().slice(0, 10);

test('what a bill says of a day stays, whoever has the key later: the day of a move is the former owner’s', async () => {
  const { issue, use, moveOn, bill } = await prepare();
  const id = await issue('acme');
  for (const day of ['09', '10', '11', '20', '21']) await use(id, `2026-01-${day}`, 10 ** (Number(day) % 10));
  await moveOn('2026-01-10', id, '--owner', 'globex');
  const expected = [
    ['acme', 10 ** 9 + 1],
    ['globex', 10 + 1 + 10],
  ];
  expect(await bill()).toEqual(expected);
  await moveOn('2026-01-20', id, '--none');
  const moved = [
    ['acme', 10 ** 9 + 1],
    ['globex', 10 + 1],
    [null, 10],
  ];
  expect(await bill()).toEqual(moved);
  await moveOn('2026-02-01', id, '--owner', 'initech');
  expect(await bill()).toEqual(moved);
  expect(await bill('--owner', 'globex')).toEqual([['globex', 11]]);
  expect(await bill('--owner', 'initech')).toEqual([]);
});

test('usage up to today, of an earlier month too, stays on the bill of the owner before the move', async () => {
  const { keys, issue, use, bill } = await prepare();
  const id = await issue('acme');
  await use(id, '2026-01-15', 7);
  await use(id, today(), 3, create.name);
  const before = await bill();
  const ofToday = () => keys('usage', '--by', 'owner', '--from', today());
  const todayBefore = await ofToday();
  await keys('set-owner', id, '--owner', 'globex');
  await keys('set-owner', id, '--owner', 'initech');
  expect([await bill(), await ofToday()]).toEqual([before, todayBefore]);
  expect(before).toEqual([['acme', 7]]);
});

test.each([
  ['SQL', "UPDATE api_keys SET owner = 'globex'"],
  ['Studio, which sets every column', "UPDATE api_keys SET owner = 'globex', past_owners = past_owners"],
  ['SQL of a replica', "SET session_replication_role = replica; UPDATE api_keys SET owner = 'globex'"],
])('a move by %s leaves earlier usage with the owner at that time', async (_way, sql) => {
  const { url, issue, use, bill } = await prepare();
  await use(await issue('acme'), '2026-01-15', 7);
  await execute(url, sql);
  expect(await bill()).toEqual([['acme', 7]]);
  expect(await bill('--owner', 'acme')).toEqual([['acme', 7]]);
});

test('set-owner says which usage stays on whose bill', async () => {
  const { environment, keys, issue } = await prepare();
  const id = await issue();
  const { output } = await runInProcess(['keys', 'set-owner', id, '--owner', 'acme'], environment);
  expect(output).toMatch(new RegExp(`^Usage +up to ${today()} \\(UTC\\) is on the bill of nobody$`, 'm'));
  expect((await keys('set-owner', id, '--none')).pastOwners).toEqual([{ owner: null, until: today() }]);
  expect((await runInProcess(['keys', 'set-owner', '--help'], environment)).output).toContain(
    'on the bill of',
  );
});

test('the CSV of usage names the owner of each day, and --owner selects by it; that of one key names its owner', async () => {
  const { environment, issue, use, moveOn } = await prepare();
  const id = await issue('acme');
  await use(id, '2026-01-09', 1);
  await use(id, '2026-01-11', 2);
  await moveOn('2026-01-10', id, '--owner', 'globex');
  const csv = async (...args: readonly string[]) => {
    const command = ['keys', 'usage', ...JANUARY, '--csv', ...args];
    const [, ...lines] = (await runInProcess(command, environment)).output.trim().split('\n');
    return lines.map((line) => line.split(',').slice(2, 4).join(' '));
  };
  expect(await csv()).toEqual(['globex 2026-01-11', 'acme 2026-01-09']);
  expect(await csv('--owner', 'acme')).toEqual(['acme 2026-01-09']);
  expect(await csv('--owner', 'globex')).toEqual(['globex 2026-01-11']);
  expect(await csv(id)).toEqual(['globex 2026-01-11', 'globex 2026-01-09']);
  const [listed, ...others] = await readJson(
    await runInProcess(['keys', 'usage', ...JANUARY, '--owner', 'acme', '--json'], environment),
  );
  expect([listed, others]).toEqual([expect.objectContaining({ id, owner: 'globex', requests: 1 }), []]);
});

test('emptying past_owners, as documented, puts all usage on the bill of the owner today', async () => {
  const { url, keys, issue, use, bill } = await prepare();
  const id = await issue('globx');
  await use(id, '2026-01-09', 1);
  await keys('set-owner', id, '--owner', 'globex');
  const documented = readFileSync('docs/database.md', 'utf8');
  const [, correction = ''] = /^### Past owners$.*?^```sql\n(.*?)^```$/ms.exec(documented) ?? [];
  expect(await bill()).toEqual([['globx', 1]]);
  await execute(url, correction);
  expect(await bill()).toEqual([['globex', 1]]);
});

test('an owner whose keys have all moved has usage, and one who never had a key is refused', async () => {
  const { environment, issue, use, bill, keys } = await prepare();
  const id = await issue('acme');
  await use(id, '2026-01-09', 1);
  await keys('set-owner', id, '--owner', 'globex');
  expect(await bill('--owner', 'acme')).toEqual([['acme', 1]]);
  const unknown = await runInProcess(['keys', 'usage', '--by', 'owner', '--owner', 'acne'], environment);
  expect(unknown).toEqual({ code: 3, output: expect.stringContaining('The owner "acne" has no keys') });
});

test('deleting the record of changes changes no bill', async () => {
  const { url, environment, issue, use, moveOn, bill } = await prepare();
  const id = await issue('acme');
  await use(id, '2026-01-09', 1);
  await moveOn('2026-01-10', id, '--owner', 'globex');
  await execute(url, "UPDATE api_key_history SET changed_at = '2026-01-10'");
  const deletion = ['keys', 'history', '--delete-before', '2026-02-01'];
  const { code, output } = await runInProcess(deletion, environment, { asOwner: true });
  expect([code, output]).toEqual([0, expect.stringMatching(/^[1-9]\d* changes /)]);
  expect(await bill()).toEqual([['acme', 1]]);
});

test.each(Object.entries(listGrants(definition.identity.grants)).filter(([kind]) => kind !== 'read'))(
  'a role with the grants of %s on keys alone moves a key',
  async (kind, { api_keys, api_key_history }) => {
    const { url, issue } = await prepare();
    const id = await issue('acme');
    const role = `mover_of_${kind}`;
    await execute(
      url,
      `CREATE ROLE ${role}; GRANT ${api_keys} ON api_keys TO ${role}; GRANT ${api_key_history} ON api_key_history TO ${role}`,
    );
    onTestFinished(async () => void (await execute(url, `DROP OWNED BY ${role}; DROP ROLE ${role}`)));
    await execute(url, `SET ROLE ${role}; UPDATE api_keys SET owner = 'globex' WHERE id = '${id}'`);
    const [stored] = await execute(url, 'SELECT past_owners FROM api_keys WHERE id = $1', [id]);
    expect(stored).toEqual({ past_owners: { [today()]: 'acme' } });
  },
);
