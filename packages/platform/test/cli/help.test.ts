import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { definition, list } from '#operations-under-test';
import { createKeyCommands } from '../../src/cli/keys-command.js';
import { KEY_STATES } from '../../src/keys/api-key.js';
import { runInProcess } from '../support/process.js';

/** What a command prints that never gets as far as the database. */
const print = (...args: readonly string[]) =>
  runInProcess(args, { DATABASE_URL: 'postgresql://127.0.0.1:1/none' });

const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
test.each([[[]], [['keys']]])('%j --version prints the version of the package', async (args) => {
  expect(await print(...args, '--version')).toEqual({ code: 0, output: `${version}\n` });
});

test.each(createKeyCommands(definition).map(({ name }) => name))(
  'keys %s --help has an example that can be copied',
  async (command) => {
    const { code, output } = await print('keys', command, '--help');
    expect(code).toBe(0);
    expect(output).toMatch(new RegExp(`Examples?:\n {2}npm run -s keys -- ${command}`));
  },
);

test.each(['create', 'set-plan', 'set-scopes', 'ban'])(
  'keys %s --help marks the options that it requires',
  async (name) => {
    const { output } = await print('keys', name, '--help');
    const marked = [...output.matchAll(/^ +(--\S+) <.*\(required\)/gm)].map(([, option = '']) => option);
    expect(marked.length).toBeGreaterThan(0);
    const { code, output: error } = await print('keys', name, ...(name === 'create' ? [] : ['0b54e7c0']));
    expect([code, error]).toEqual([2, expect.stringContaining(`required option '${marked[0]} <`)]);
    for (const option of marked) expect(output).toMatch(new RegExp(`-- ${name} .*${option} `));
  },
);

test.each([[[]], [['keys']]])('%j --help has examples and the exit codes', async (args) => {
  const { code, output } = await print(...args, '--help');
  expect(code).toBe(0);
  expect(output).toMatch(/Examples:\n {2}npm run/);
  expect(output).toMatch(/Exit codes:\n.*0 .*\n.*1 .*\n.*2 .*\n.*3 .*\n.*4 /);
});

test.each([
  [['create', '--plan', 'free'], /--name/],
  [['create', '--name', 'x', '--plan', 'gold'], new RegExp(Object.keys(definition.plans).join(', '))],
  [['create', '--name', 'x', '--plan', 'enterprise'], /--per-minute and --per-day/],
  [['create', '--name', 'x', '--plan', 'free', '--per-day', '5'], /--per-minute and --per-day/],
  [['create', '--name', 'x', '--plan', 'free', '--expires', '30'], /30d/],
  [['create', '--name', '  ', '--plan', 'free'], /1 to 200 characters/],
  [
    ['create', '--name', 'x', '--plan', 'free', '--scopes', 'nobody'],
    new RegExp(definition.scopes.join(', ')),
  ],
  [
    ['create', '--name', 'x', '--plan', 'free', '--scopes', ''],
    new RegExp(`one or more of ${definition.scopes[0]}`),
  ],
  [['set-scopes', '0b54e7c0', '--scopes', `${list.scope},`], new RegExp(definition.scopes.join(', '))],
  [['set-scopes', '0b54e7c0'], /--scopes/],
  [['show', 'x'], /keys list/],
  [['show', 'by_test_abc'], /The first 12 characters/],
  [['show', 'by_test_abcde'], /The first 12 characters/],
  [['revoke', 'by_test_abcd'], /An id looks like/],
  [['ban', '0b54e7c0', '--for', '0h'], /30d/],
  [['ban', '0b54e7c0', '--for', '36500d'], /before 2100: to end a key for good, revoke it/],
  [['list', '--state', 'lost'], new RegExp(KEY_STATES.join(', '))],
  [['list', '--plan', 'gold'], new RegExp(Object.keys(definition.plans).join(', '))],
  [['list', '--unused-for', '90'], /30d/],
  [['history', '--since', 'Tuesday'], /30d/],
  [['history', '--delete-before', '2026-02-30'], /2026-01-31/],
  [['history', '--delete-before', '30d'], /2026-01-31/],
  [['history', '--delete-before', '9999-01-01'], /in the future/],
  [['history', '--delete-before', '2026-01-01', '--since', '7d'], /cannot be used with/],
  [['history', '0b54e7c0', '--delete-before', '2026-01-01'], /for all keys: leave out the id/],
  [['create', '--name', 'x', '--plan', 'free', '--owner', ' '], /An owner has 1 to 200 characters/],
  [['create', '--name', 'x', '--plan', 'free', '--owner', 'x'.repeat(201)], /1 to 200 characters/],
  [['set-owner', '0b54e7c0'], /--owner, or --none/],
  [['set-owner', '0b54e7c0', '--none', '--owner', 'x'], /cannot be used with/],
  [['usage', '0b54e7c0', '--owner', 'x'], /leave out the id/],
  [['rotate', '--owner', 'x', '--yes', '-q'], /cannot be used with/],
  [['rotate'], /by its id, or all keys of an owner/],
  [['set-plan', '0b54e7c0', '--plan', 'pro', '--owner', 'x'], /by its id, or all keys of an owner/],
  [['set-scopes', '--scopes', list.scope], /by its id, or all keys of an owner/],
  [['revoke', '0b54e7c0', '--yes'], /--yes belongs to --owner/],
  [['frobnicate'], /frobnicate/],
  [['show'], /missing required argument/],
  [['list', '--nonsense'], /unknown option '--nonsense'/],
  [[], /Commands:/],
])('keys %j fails with a message that says what is wrong', async (args, message) => {
  const { code, output } = await print('keys', ...args);
  expect(code).toBe(2);
  expect(output).toMatch(message);
  expect(output).not.toMatch(/ at .*\.js:/);
});
