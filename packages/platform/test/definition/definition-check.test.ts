import { runNode } from '@animal-store/platform/testing';
import { expect, test } from 'vitest';
import { definition } from '#operations-under-test';
import type { Definition } from '../../src/definition/definition.js';
import { checkDefinition } from '../../src/operations/definition-check.js';
import { builtModule, programOf, runInProcess } from '../support/process.js';

const { identity, windows, plans, errors } = definition;
const [code = '', error] = Object.entries(errors)[0] ?? [];
/** The folder of the built store */
const BUILT = programOf('main').replace('main.js', '');
const NOWHERE = { DATABASE_URL: 'postgresql://127.0.0.1:1/none' };

/** The definition with members that its types may not allow, as a store in JavaScript has them */
const changed = (members: object) => ({ ...definition, ...members }) as Definition;
const named = (members: object) => ({ identity: { ...identity, ...members } });
const sold = (limits: unknown) => ({ plans: { ...plans, gold: limits } });
const MAX = 2 ** 31 - 1;

test('the definition of the store is right', () => {
  expect(() => checkDefinition(definition)).not.toThrow();
});

/** Members, and what is said of the definition that has them */
const WRONG: readonly (readonly [members: object, message: string])[] = [
  [named({ name: 'Boat Yard' }), 'identity.name must be lower case with hyphens, and is "Boat Yard"'],
  [named({ interfaceVersion: '1' }), 'identity.interfaceVersion must be a version such as 1.0.0, and is "1"'],
  [named({ license: 'MIT' }), 'identity.license must be an object, and is "MIT"'],
  [
    named({ keyPrefix: 'PS-' }),
    'identity.keyPrefix must be lower case with an underscore at its end, and at most six characters',
  ],
  [
    named({ metricsPrefix: 'boats' }),
    'identity.metricsPrefix must be lower case with an underscore at its end',
  ],
  [
    named({ grants: { boats: ['DROP'] } }),
    'identity.grants.boats.0 must be SELECT, INSERT, UPDATE or DELETE',
  ],
  [{ identity: undefined }, 'identity must be an object, and is missing'],
  [
    { root: '/srv/store' },
    'root must be the file: URL of a folder, with a slash at its end, and is "/srv/store"',
  ],
  [{ loadPrisma: undefined }, 'loadPrisma must be a function, and is missing'],
  [
    { windows: windows.slice(1) },
    'windows.0 must have the field perMinute and the length of a minute, 60000',
  ],
  [{ windows: [...windows, windows[0]] }, 'windows must differ in name and field'],
  [sold({ perMinute: 0 }), `plans.gold.perMinute must be a whole number from 1 to ${MAX}, and is 0`],
  [
    sold({ perMinute: 60, perDay: 1.5 }),
    `plans.gold.perDay must be a whole number from 1 to ${MAX}, and is 1.5`,
  ],
  [sold({ perDay: 9 }), `plans.gold.perMinute must be a whole number from 1 to ${MAX}, and is missing`],
  [sold({ perMinute: 60, perWeek: 9 }), 'plans.gold.perWeek must be one of perMinute, perDay, and is 9'],
  [
    { plans: { ...plans, 'very-gold': { perMinute: 1 } } },
    'plans must have names of letters, digits and underscores',
  ],
  [{ fallbackPlan: 'enterprise' }, 'fallbackPlan must be a plan with limits, and is "enterprise"'],
  [{ fallbackPlan: 'constructor' }, 'fallbackPlan must be a plan with limits, and is "constructor"'],
  [{ developmentPlan: 'gold' }, 'developmentPlan must be a plan with limits, and is "gold"'],
  [{ scopes: [] }, 'scopes must have at least one scope'],
  [{ defaultScopes: [] }, 'defaultScopes must have at least one scope'],
  [
    { defaultScopes: ['gold:dig'] },
    `defaultScopes must differ, and be some of ${definition.scopes.join(', ')}`,
  ],
  [{ scopes: ['boats, read'] }, 'scopes.0 must be visible ASCII without commas'],
  [
    { scopes: ['any'] },
    'scopes.0 must be visible ASCII without commas, quotes and backslashes, and not the word any',
  ],
  [{ errors: { not_found: error } }, "errors must have codes of their own: not_found is the platform's"],
  [
    { errors: { 'no-way': error } },
    'errors must have codes of lower-case words and underscores, unlike no-way',
  ],
  [
    { errors: { [code]: { ...error, status: 200 } } },
    `errors.${code}.status must be a whole number from 400 to 599, and is 200`,
  ],
];

test.each(WRONG.map(([members, message]) => [message, members] as const))(
  'a wrong definition is refused by the name of its member: %s',
  (message, members) => {
    expect(() => checkDefinition(changed(members))).toThrow(
      `The definition of the store is wrong: ${message}`,
    );
  },
);

/** Its name would hide what handlers find in ctx. */
const NOW = { name: 'now', description: 'Now', createStore: () => ({}), procedures: {} };

test('a command, even --help, ends with what is wrong in a definition, and each of keys with what is wrong in a resource', async () => {
  const definition = changed(sold({ perMinute: 0 }));
  const help = await runInProcess(['keys', '--help'], NOWHERE, { definition });
  expect(help).toEqual({
    code: 1,
    output: expect.stringMatching(/^The definition .* plans\.gold\.perMinute must .*\n$/),
  });
  const list = await runInProcess(['keys', 'list'], NOWHERE, { furtherResources: [NOW] });
  expect(list).toEqual({
    code: 1,
    output: expect.stringMatching(/^The definition .* a resource is named now, .*\n$/),
  });
});

/** A store whose files are loaded before it is run: `run` refuses what is wrong, and nothing throws until then. */
const startWith = (change: string) => `
  const { defineStore } = await import('${builtModule('store/index.js')}');
  const { run } = await import('${builtModule('run.js')}');
  const { definition } = await import('${BUILT}definition.js');
  const { resources } = await import('${BUILT}router.js');
  const store = { definition, resources: [...resources] };
  ${change}
  const { createRouter } = defineStore(store.definition);
  createRouter(store.resources);
  await run(store);`;

test.each([
  [
    'fallbackPlan must be a plan with limits',
    "store.definition = { ...definition, fallbackPlan: 'enterprise' };",
  ],
  ['windows must be a list, and is missing', 'store.definition = { ...definition, windows: undefined };'],
  ['a resource is named limits', "store.resources.push({ name: 'limits', procedures: {} });"],
  [
    'an operation is named "then"',
    "store.resources.push({ name: 'odd', procedures: { then: Object.values(resources[0].procedures)[0] } });",
  ],
])(
  'a start ends with one sentence, although the files of the store were loaded before: %s',
  async (message, change) => {
    const program = runNode(['--input-type=module', '--eval', startWith(change)], NOWHERE);
    expect(await program.ended, program.output()).toBe(1);
    expect(program.output()).toMatch(new RegExp(`^The definition of the store is wrong: .*${message}.*\\n$`));
  },
);
