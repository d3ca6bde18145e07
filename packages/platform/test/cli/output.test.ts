import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createTemporaryFolder, type Environment, execute, runCommand } from '@animal-store/platform/testing';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { create, definition, list, otherList } from '#operations-under-test';
import { programOf, run, runInProcess, runKeys } from '../support/process.js';
import { createTestDatabase } from '../support/test-service.js';

let databaseUrl: string;
let environment: Environment;

beforeEach(async () => {
  databaseUrl = await createTestDatabase();
  environment = { DATABASE_URL: databaseUrl };
});

const print = (...args: readonly string[]) => runInProcess(args, environment);

const createKey = (name: string, ...plan: string[]) =>
  runKeys(environment, 'create', '--name', name, ...plan);

const ban = (id: string) =>
  execute(
    databaseUrl,
    "UPDATE api_keys SET banned_until = now() + interval '1 h', ban_seconds = 300 WHERE id = $1",
    [id],
  );

test('with --json every command that prints a key includes its state and the limits in effect', {
  timeout: 60_000,
}, async () => {
  const limits = { perMinute: 60, perDay: 1_000 };
  const { id, ...created } = await createKey('free', '--plan', 'free');
  expect(created).toMatchObject({
    plan: 'free',
    perMinute: null,
    state: 'active',
    limits,
    scopes: definition.scopes,
  });
  const own = await createKey(
    'own',
    '--scopes',
    create.scope,
    '--plan',
    'enterprise',
    '--per-minute',
    '7',
    '--per-day',
    '9',
  );
  expect(own).toMatchObject({ perMinute: 7, scopes: [create.scope], limits: { perMinute: 7, perDay: 9 } });
  expect(await runKeys(environment, 'show', id)).toMatchObject({ state: 'active', limits });
  const pro = { plan: 'pro', limits: { perMinute: 300, perDay: 10_000 } };
  expect(await runKeys(environment, 'set-plan', id, '--plan', 'pro')).toMatchObject(pro);
  const readOnly = await runKeys(
    environment,
    'set-scopes',
    id,
    '--scopes',
    `${otherList.scope}, ${list.scope},${list.scope}`,
  );
  expect(readOnly).toMatchObject({ ...pro, scopes: [list.scope, otherList.scope] });
  expect(await runKeys(environment, 'rotate', id)).toMatchObject({ ...pro, state: 'active' });
  await ban(id);
  expect(await runKeys(environment, 'unban', id)).toMatchObject({ ...pro, state: 'active' });
  expect(await runKeys(environment, 'revoke', id)).toMatchObject({ ...pro, state: 'revoked' });
  const listed = await runKeys(environment, 'list');
  expect(listed).toMatchObject([
    { name: 'free', state: 'revoked', scopes: [list.scope, otherList.scope], ...pro },
    { name: 'own', state: 'active', scopes: [create.scope] },
  ]);
});

test('list shows when each key was last used, and its state', async () => {
  for (const name of ['used', 'revoked', 'new']) await createKey(name, '--plan', 'free');
  await execute(databaseUrl, "UPDATE api_keys SET revoked_at = now() WHERE name = 'revoked'");
  await execute(
    databaseUrl,
    `INSERT INTO api_key_usage (api_key_id, day, operation, requests)
     SELECT id, (now() AT TIME ZONE 'utc')::date - age, '${list.name}', 1 FROM api_keys,
       LATERAL (VALUES (96, 'revoked'), (2, 'used'), (3, 'used')) AS used (age, name) WHERE used.name = api_keys.name`,
  );
  const day = (age: number) => new Date(Date.now() - age * 86_400_000).toISOString().slice(0, 10);
  expect(await runKeys(environment, 'list')).toMatchObject([
    { name: 'used', state: 'active', lastUsedOn: day(2) },
    { name: 'revoked', state: 'revoked', lastUsedOn: day(96) },
    { name: 'new', state: 'active', lastUsedOn: null },
  ]);
  const table = (await print('keys', 'list')).output;
  expect(table).toMatch(
    new RegExp(`used .* ${day(2)}  never +active\n.*revoked .* ${day(96)}  never +revoked\n`),
  );
  expect(table).toMatch(/new .* - +never +active\n$/);
});

test('show prints a field per line, none longer than 100 columns', async () => {
  const { id, hint } = await createKey('n'.repeat(60), '--plan', 'business', '--expires', '30d');
  const { code, output } = await print('keys', 'show', id);
  expect(code).toBe(0);
  const lines = output.trimEnd().split('\n');
  expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(100);
  const fields = Object.fromEntries(lines.map((line) => line.split(/ {2,}/)));
  expect(fields).toMatchObject({
    ID: id,
    Name: 'n'.repeat(60),
    Key: `${hint}…`,
    Plan: 'business',
    Limits: '1000 per minute, 100000 per day',
    Scopes: definition.scopes.join(', '),
    State: 'active',
  });
  const date = /^\d{4}-\d\d-\d\dT\d\d:\d\dZ$/;
  expect([fields.Created, fields.Expires]).toEqual([
    expect.stringMatching(date),
    expect.stringMatching(date),
  ]);
});

test('-q prints the key and nothing else, for create and rotate, and excludes --json', async () => {
  const isKey = /^by_test_\w+\n$/;
  const created = await print('keys', 'create', '--name', 'x', '--plan', 'free', '-q');
  expect(created).toEqual({ code: 0, output: expect.stringMatching(isKey) });
  const [{ id }] = await runKeys(environment, 'list');
  const rotated = await print('keys', 'rotate', id, '-q');
  expect(rotated).toEqual({ code: 0, output: expect.stringMatching(isKey) });
  expect(rotated.output).not.toBe(created.output);
  const both = await print('keys', 'rotate', id, '-q', '--json');
  expect(both).toEqual({ code: 2, output: expect.stringMatching(/--quiet.*cannot be used with.*--json/) });
});

test('a command that would change nothing says so and exits with 1: unban without a ban, changes of a revoked key', {
  timeout: 60_000,
}, async () => {
  const { id } = await createKey('x', '--plan', 'free');
  expect(await print('keys', 'unban', id)).toEqual({
    code: 1,
    output: `The key ${id} has no ban: nothing was changed.\n`,
  });
  await runKeys(environment, 'revoke', id);
  const before = await runKeys(environment, 'show', id);
  for (const args of [
    ['set-plan', id, '--plan', 'pro'],
    ['set-scopes', id, '--scopes', list.scope],
  ]) {
    const { code, output } = await print('keys', ...args);
    expect([code, output]).toEqual([1, expect.stringMatching(/ is revoked, so nothing was changed/)]);
  }
  expect(await runKeys(environment, 'show', id)).toEqual(before);
});

describe('the beginning of an id', () => {
  const IDS = ['a1b2c3d4-0000-4000-8000-000000000001', 'a1b2c3d4-ffff-4000-8000-000000000002'] as const;
  beforeEach(async () => {
    await createKey('first', '--plan', 'free');
    await createKey('second', '--plan', 'free');
    for (const [index, name] of ['first', 'second'].entries())
      await execute(databaseUrl, 'UPDATE api_keys SET id = $1 WHERE name = $2', [IDS[index], name]);
  });

  test('is accepted by every command if no other key has it', { timeout: 60_000 }, async () => {
    const [id] = IDS;
    expect(await runKeys(environment, 'show', 'a1b2c3d4-0')).toMatchObject({ id });
    expect(await runKeys(environment, 'set-plan', 'A1B2C3D4-0000-4', '--plan', 'pro')).toMatchObject({ id });
    expect(await runKeys(environment, 'usage', 'a1b2c3d4-00')).toMatchObject({ id, name: 'first' });
    expect(await runKeys(environment, 'rotate', 'a1b2c3d4-000')).toMatchObject({ id });
    await ban(id);
    expect(await runKeys(environment, 'unban', 'a1b2c3d4-0000-')).toMatchObject({ id });
    expect(await runKeys(environment, 'revoke', 'a1b2c3d4-0000')).toMatchObject({ id, state: 'revoked' });
    const listed = await runKeys(environment, 'list');
    expect(listed.map(({ state }: { state: string }) => state)).toEqual(['revoked', 'active']);
  });

  test('is rejected if several keys have it: none is changed, and all are named', async () => {
    for (const prefix of ['a1b2', 'a1b2c3d4', 'a1b2c3d4-']) {
      const { code, output } = await print('keys', 'revoke', prefix);
      expect(code).toBe(2);
      expect(output).toMatch(new RegExp(`${prefix}.*\n.*${IDS[0]}  first\n.*${IDS[1]}  second\n$`));
    }
    const listed = await runKeys(environment, 'list');
    expect(listed.map(({ state }: { state: string }) => state)).toEqual(['active', 'active']);
  });

  test('is reported as not found if no key has it', async () => {
    const { code, output } = await print('keys', 'revoke', 'a1b2c3d4-1');
    expect([code, output]).toEqual([3, expect.stringMatching(/no key.*a1b2c3d4-1.*"keys list"/)]);
  });

  test('is rejected if it has fewer than four characters, because a typing error could match a key', async () => {
    const { code, output } = await print('keys', 'revoke', 'a1b');
    expect([code, output]).toEqual([2, expect.stringContaining('at least its first 4 characters')]);
  });
});

const FULL_DEVICE = '/dev/full';

test.runIf(existsSync(FULL_DEVICE))(
  'a key that could not be printed is not reported as success',
  async () => {
    const command = `"$0" "${programOf('cli')}" keys create --name lost --plan free > ${FULL_DEVICE}`;
    const program = runCommand('sh', ['-c', command, process.execPath], environment);
    expect(await program.ended).toBe(1);
    expect(program.output()).toMatch(/^The output could not be written \(.*ENOSPC.*\).*\n$/);
  },
);

test('a command whose output nobody takes stops the embedded PostgreSQL that it started', async () => {
  const DATA_DIR = await createTemporaryFolder();
  onTestFinished(() => rm(DATA_DIR, { recursive: true, force: true }));
  const program = run('cli', ['seed'], { DATA_DIR });
  program.child.stdout?.destroy();
  expect(await program.ended).toBe(1);
  expect(program.output()).toMatch(/^The output could not be written \(.*EPIPE.*\).*\n$/);
  expect(existsSync(join(DATA_DIR, 'postgres/data/PG_VERSION'))).toBe(true);
  expect(existsSync(join(DATA_DIR, 'postgres/data/postmaster.pid'))).toBe(false);
});
