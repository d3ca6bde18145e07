import { createCaller, runNode } from '@animal-store/platform/testing';
import { beforeAll, expect, test } from 'vitest';
import { definition } from '#operations-under-test';
import type { Definition } from '../../src/definition/definition.js';
import { builtModule, programOf, runInProcess } from '../support/process.js';
import { asService } from '../support/service-role.js';
import { createTestDatabase, startService } from '../support/test-service.js';

/** What no migration of the store has added */
const plans = { ...definition.plans, gold: { perMinute: 60 } };
const scopes = [...definition.scopes, 'gold:dig'] as const;

let url: string;
beforeAll(async () => {
  url = await createTestDatabase();
});

test.each([
  [{ plans }, 'the plan gold', `ALTER TYPE "plan" ADD VALUE 'gold'`],
  [{ scopes }, 'the scope gold:dig', 'drop and add the constraint api_keys_scopes_known'],
  [{ plans, scopes }, 'the plan gold, the scope gold:dig', `ALTER TYPE "plan" ADD VALUE 'gold'`],
])(
  'a command on keys ends with one sentence where no migration has added %2$s',
  async (members, names, statement) => {
    const changed: Definition = { ...definition, ...members };
    const listed = await runInProcess(['keys', 'list'], { DATABASE_URL: url }, { definition: changed });
    const said = `The database does not know ${names}, which the definition of the store names: add a migration (${statement}`;
    expect(listed).toEqual({ code: 1, output: expect.stringMatching(/^[^\n]*\n$/) });
    expect(listed.output).toContain(said);
  },
);

test('a start ends with the sentence, too', async () => {
  const built = programOf('main').replace('main.js', '');
  const script = `
    const { run } = await import('${builtModule('run.js')}');
    const { definition } = await import('${built}definition.js');
    const { resources } = await import('${built}router.js');
    const plans = { ...definition.plans, gold: { perMinute: 60 } };
    await run({ definition: { ...definition, plans }, resources });`;
  const program = runNode(['--input-type=module', '--eval', script], {
    DATABASE_URL: asService(url),
    PORT: '0',
  });
  expect(await program.ended, program.output()).toBe(1);
  expect(program.output()).toContain('The database does not know the plan gold, which the definition');
  expect(program.output()).not.toMatch(/^ +at /m);
});

test('readiness is 503 while the database lacks a plan, and the database may know more than the definition names', async () => {
  const lacking = await startService({ databaseUrl: url, definition: { ...definition, plans } });
  const ready = async (service: typeof lacking) =>
    (await createCaller(service)('/health/ready', { key: null })).status;
  expect(await ready(lacking)).toBe(503);
  await lacking.close();
  const { pro: _, ...fewer } = definition.plans;
  const older = await startService({ databaseUrl: url, definition: { ...definition, plans: fewer } });
  expect(await ready(older)).toBe(200);
  await older.close();
});
