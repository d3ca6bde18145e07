import { createCaller, execute } from '@animal-store/platform/testing';
import { beforeAll, expect, test } from 'vitest';
import { definition, list } from '#operations-under-test';
import { runInProcess, runKeys } from '../support/process.js';
import { useService } from '../support/test-service.js';

let environment: { DATABASE_URL: string };
const { service } = useService();

beforeAll(async () => {
  environment = { DATABASE_URL: service.databaseUrl };
});

const create = (name: string, owner: string | null) => service.keys.create({ name, owner, plan: 'free' });
const names = (keys: readonly { name: string }[]) => keys.map(({ name }) => name);
const keys = (...args: readonly string[]) => runInProcess(['keys', ...args], environment);
const statusOf = async (key: string) => (await createCaller({ url: service.url, key })(list.path)).status;

test('an owner is shown by the commands and never to callers, can be changed, and selects keys', async () => {
  const owner = 'Açmé & Söhne';
  const made = await runKeys(environment, 'create', '--name', 'a', '--plan', 'free', '--owner', owner);
  expect(made.owner).toBe(owner);
  await create('b', 'somebody else entirely');
  expect(names(await runKeys(environment, 'list', '--owner', owner))).toEqual(['a']);
  expect((await keys('show', made.id)).output).toMatch(new RegExp(`^Owner +${owner}$`, 'm'));
  expect((await keys('list')).output).toMatch(/ somebody else ent… /);
  for (const path of ['/v1/key', '/trpc/getKey']) {
    const { status, body } = await createCaller({ url: service.url, key: made.key })(path);
    expect([status, JSON.stringify(body)]).toEqual([200, expect.not.stringMatching(/owner|Söhne/)]);
  }
  expect(await runKeys(environment, 'set-owner', made.id, '--none')).toMatchObject({ owner: null });
  expect(await runKeys(environment, 'list', '--owner', owner)).toEqual([]);
  expect(await runKeys(environment, 'set-owner', made.id, '--owner', 'x')).toMatchObject({ owner: 'x' });
});

test.each(['', ' \u00a0\u3000', 'x'.repeat(201)])('the database refuses the owner %j', async (owner) => {
  await expect(create('x', owner)).rejects.toThrow(/api_keys_owner/);
});

test.each([
  ['rotate', 'rotated', []],
  ['revoke', 'revoked', []],
  ['set-plan', 'moved to the plan pro', ['--plan', 'pro']],
  ['set-scopes', `given the scopes ${list.scope}`, ['--scopes', list.scope]],
] as const)(
  '%s --owner changes nothing without --yes, and lists what would be %s',
  async (command, what, options) => {
    const owner = `shown by ${command}`;
    const issued = [await create('first', owner), await create('second', owner), await create('x', 'other')];
    const revoked = await create('gone', owner);
    await service.keys.revoke(revoked.apiKey.id, new Date());
    const { code, output } = await keys(command, '--owner', owner, ...options);
    expect(code).toBe(2);
    expect(output).toMatch(
      new RegExp(
        `^These 2 keys would be ${what}:\n\nID .*\n.* first .*\n.* second .*\n\nNothing was .*--yes`,
      ),
    );
    const history = await runKeys(environment, 'history');
    const ids = new Set(issued.map(({ apiKey }) => apiKey.id));
    const changes = history.filter(
      ({ id, column }: { id: string; column: unknown }) => ids.has(id) && column,
    );
    expect(changes).toEqual([]);
  },
);

test('braces around what is no member of a command are left as they are in what it says', async () => {
  const { output } = await keys('revoke', '--owner', '{yes} {toString} {none}');
  expect(output).toContain('{toString} {none}');
});

test('rotate --owner --yes replaces all keys of the owner, and prints each new one', async () => {
  const old = [await create('first', 'rotating'), await create('second', 'rotating')];
  const options = ['--overlap', '1h', '--yes'];
  const rotated = await runKeys(environment, 'rotate', '--owner', 'rotating', ...options);
  expect(names(rotated)).toEqual(['first', 'second']);
  const all = [...old, ...rotated].map(({ key }) => key);
  expect(new Set(all).size).toBe(4);
  expect(await Promise.all(all.map(statusOf))).toEqual([200, 200, 200, 200]);
  const { code, output } = await keys('rotate', '--owner', 'rotating', '--yes');
  expect(code).toBe(0);
  const printed = [...output.matchAll(/^\w{8} +(?:first|second) +(by_test_\w+)$/gm)];
  expect(await Promise.all(printed.map(([, key = '']) => statusOf(key)))).toEqual([200, 200]);
  expect(output).toMatch(/not shown again\.\n$/);
});

test('set-plan and revoke --owner --yes change all keys of the owner, and no other', async () => {
  const issued = [
    await create('first', 'leaving'),
    await create('second', 'leaving'),
    await create('x', 'staying'),
  ];
  const moved = await runKeys(environment, 'set-plan', '--owner', 'leaving', '--plan', 'pro', '--yes');
  expect(moved).toMatchObject([
    { name: 'first', plan: 'pro', owner: 'leaving' },
    { name: 'second', plan: 'pro' },
  ]);
  expect((await keys('revoke', '--owner', 'leaving', '--yes')).output).toMatch(
    / first .* revoked\n.* second /,
  );
  const statuses = () => Promise.all(issued.map(({ key }) => statusOf(key)));
  await expect.poll(statuses).toEqual([401, 401, 200]);
  for (const yes of [[], ['--yes']])
    expect(await keys('revoke', '--owner', 'leaving', ...yes)).toEqual({
      code: 3,
      output: expect.stringMatching(/^All keys of the owner "leaving" are revoked, or it has none.*\n$/),
    });
});

test('set-scopes --owner --yes changes what all keys of the owner may do, and no other', async () => {
  const issued = [await create('first', 'reading'), await create('second', 'reading')];
  const other = await create('x', 'writing');
  const scopes = [list.scope];
  const changed = await runKeys(
    environment,
    'set-scopes',
    '--owner',
    'reading',
    '--scopes',
    ...scopes,
    '--yes',
  );
  expect(changed).toMatchObject([
    { name: 'first', scopes, owner: 'reading' },
    { name: 'second', scopes },
  ]);
  for (const { apiKey } of issued) expect(await service.keys.find(apiKey.id)).toMatchObject({ scopes });
  expect((await service.keys.find(other.apiKey.id))?.scopes).toEqual(definition.scopes);
});

test('if one key of an owner cannot be changed, none is', async () => {
  await create('first', 'all or none');
  await create('stuck', 'all or none');
  await execute(
    service.databaseUrl,
    `ALTER TABLE api_keys ADD CONSTRAINT own CHECK (name <> 'stuck' OR plan = 'free')`,
  );
  expect((await keys('set-plan', '--owner', 'all or none', '--plan', 'pro', '--yes')).code).toBe(1);
  await execute(service.databaseUrl, 'ALTER TABLE api_keys DROP CONSTRAINT own');
  const plans = (await service.keys.findByOwner('all or none')).map(({ plan }) => plan);
  expect(plans).toEqual(['free', 'free']);
});

test('usage --owner shows the keys of that owner only', async () => {
  const own = await create('used', 'counted');
  const other = await create('used too', 'not counted');
  await execute(
    service.databaseUrl,
    `INSERT INTO api_key_usage (api_key_id, day, operation, requests)
     SELECT id, current_date, '${list.name}', 5 FROM unnest($1::uuid[]) AS id`,
    [[own.apiKey.id, other.apiKey.id]],
  );
  expect(names(await runKeys(environment, 'usage', '--owner', 'counted'))).toEqual(['used']);
});

test('list shows the keys that all of --plan, --state, --unused-for and --owner fit', async () => {
  const owner = 'filtered';
  const [fresh, idle, used, gone, banned] = await Promise.all(
    ['fresh', 'idle', 'used', 'gone', 'banned'].map((name) => create(name, owner)),
  );
  const sql = (text: string, ...values: unknown[]) => execute(service.databaseUrl, text, values);
  await sql(
    `UPDATE api_keys SET created_at = now() - interval '100 days' WHERE owner = $1 AND name <> 'fresh'`,
    owner,
  );
  await sql(
    `INSERT INTO api_key_usage (api_key_id, day, operation, requests)
     VALUES ($1, current_date - 5, '${list.name}', 1), ($2, current_date - 95, '${list.name}', 1)`,
    used?.apiKey.id,
    idle?.apiKey.id,
  );
  await service.keys.revoke(gone?.apiKey.id ?? '', new Date());
  await service.keys.banFor(banned?.apiKey.id ?? '', 3_600, 3_600);
  await service.keys.setPlanAll([fresh?.apiKey.id ?? ''], { plan: 'pro' });
  const listKeys = async (...options: readonly string[]) =>
    names(await runKeys(environment, 'list', '--owner', owner, ...options)).sort();
  expect(await listKeys('--plan', 'pro')).toEqual(['fresh']);
  expect(await listKeys('--state', 'revoked')).toEqual(['gone']);
  expect(await listKeys('--state', 'banned')).toEqual(['banned']);
  expect(await listKeys('--unused-for', '90d')).toEqual(['banned', 'gone', 'idle']);
  expect(await listKeys('--unused-for', '90d', '--state', 'active')).toEqual(['idle']);
  expect(await listKeys('--unused-for', '4d', '--state', 'active')).toEqual(['idle', 'used']);
  expect(await listKeys('--unused-for', '90d', '--plan', 'pro')).toEqual([]);
});

test('a ban lasts as long as it says, in place of a running one, for callers too, and the next is at most a day', async () => {
  const { key, apiKey } = await create('looping', null);
  const { id } = apiKey;
  expect(await statusOf(key)).toBe(200);
  const code = async () => (await createCaller({ url: service.url, key })(list.path)).body.code;
  for (const [duration, seconds, next] of [
    ['8h', 28_800, 57_600],
    ['90d', 7_776_000, 86_400],
    ['1h', 3_600, 7_200],
  ] as const) {
    const shown = await runKeys(environment, 'ban', id, '--for', duration);
    expect(shown.state).toBe('banned');
    const leftMs = Date.parse(shown.bannedUntil) - Date.now();
    expect(Math.abs(leftMs - seconds * 1000)).toBeLessThan(60_000);
    expect((await runKeys(environment, 'show', id)).nextBanSeconds).toBe(next);
    await expect.poll(code).toBe('api_key_banned');
  }
  expect(await runKeys(environment, 'unban', id)).toMatchObject({ state: 'active', banSeconds: null });
  await expect.poll(() => statusOf(key)).toBe(200);
  await service.keys.revoke(id, new Date());
  expect((await keys('ban', id, '--for', '1h')).code).toBe(1);
});

test('usage of an owner who has no keys is an error, and not an empty table', async () => {
  for (const options of [[], ['--csv']]) {
    const { code, output } = await keys('usage', '--owner', 'no such owner', ...options);
    expect(code).toBe(3);
    expect(output).toContain(
      'The owner "no such owner" has no keys: "keys list" shows all keys and their owners.',
    );
  }
});
