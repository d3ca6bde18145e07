import { type Environment, execute } from '@animal-store/platform/testing';
import { beforeAll, expect, test } from 'vitest';
import { runInProcess, runKeys } from '../support/process.js';
import { createTestDatabase } from '../support/test-service.js';

let environment: Environment & { DATABASE_URL: string };
beforeAll(async () => {
  environment = { DATABASE_URL: await createTestDatabase() };
});

const create = (name: string) => runKeys(environment, 'create', '--name', name, '--plan', 'free');
const show = (text: string) => runInProcess(['keys', 'show', text], environment);

test('keys show finds a key by its first characters, as the list and the log show them', async () => {
  const { id, hint } = await create('shop');
  const { output } = await runInProcess(['keys', 'list'], environment);
  const [shown = ''] = /by_test_\S+/.exec(output) ?? [];
  expect(shown).toBe(`${hint}…`);
  for (const text of [hint, shown, `${hint}...`])
    expect(await runKeys(environment, 'show', text)).toMatchObject({ id, name: 'shop' });
});

test('the first characters of several keys are an error that lists the id and name of each', async () => {
  const keys = [await create('first'), await create('second')];
  await execute(environment.DATABASE_URL, `UPDATE api_keys SET hint = 'by_test_same' WHERE id = ANY ($1)`, [
    keys.map(({ id }) => id),
  ]);
  const [first, second] = keys;
  expect(await show('by_test_same')).toEqual({
    code: 2,
    output: `2 keys start with by_test_same:\n  ${first.id}  first\n  ${second.id}  second\n`,
  });
});

test('first characters that no key has are reported as not found', async () => {
  const output = 'There is no key that starts with by_test_none: "keys list" shows all.\n';
  expect(await show('by_test_none')).toEqual({ code: 3, output });
});
