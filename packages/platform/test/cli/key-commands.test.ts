import {
  type Caller,
  createCaller,
  execute,
  readJson,
  runNode,
  untilListening,
  untilServed,
} from '@animal-store/platform/testing';
import { expect, test } from 'vitest';
import { definition, list } from '#operations-under-test';
import type { Definition } from '../../src/definition/definition.js';
import { withoutModule } from '../support/missing-module.js';
import { programOf, run, runInProcess, runKeys } from '../support/process.js';
import { setUpServiceProcesses } from '../support/service-processes.js';
import { asService } from '../support/service-role.js';
import { createTestDatabase } from '../support/test-service.js';

const processes = setUpServiceProcesses();

test('keys can be created and listed with or without a running service; create prints one JSON object on one line', async () => {
  const keys = async (...args: string[]) => {
    const program = run('cli', ['keys', ...args], { DATA_DIR: processes.dataDir });
    return { code: await program.ended, output: program.output() };
  };
  /** Once a service runs, its PostgreSQL is there for the process of the tests, too. */
  const keysBeside = (...args: string[]) => runInProcess(['keys', ...args], { DATA_DIR: processes.dataDir });
  const before = await keys('create', '--name', 'before', '--plan', 'free', '--json');
  expect(before.output.trim().split('\n')).toHaveLength(1);
  const issued = JSON.parse(before.output);
  expect(issued).toMatchObject({
    id: expect.any(String),
    plan: 'free',
    key: expect.stringMatching(/^by_test_/),
  });

  const url = await untilListening(processes.start());
  const served = (call: Caller) => untilServed(() => call(list.path));
  expect((await served(createCaller({ url, key: issued.key }))).status).toBe(200);
  const beside = JSON.parse(
    (
      await keys(
        'create',
        '--name',
        'big',
        '--plan',
        'enterprise',
        '--per-minute',
        '5',
        '--per-day',
        '9',
        '--json',
      )
    ).output,
  );
  const call = createCaller({ url, key: beside.key });
  expect((await served(call)).status).toBe(200);
  const listed = JSON.parse((await keys('list', '--json')).output);
  expect(listed.map(({ name }: { name: string }) => name)).toEqual(['before', 'development', 'big']);
  expect(JSON.stringify(listed)).not.toContain(beside.key);
  for (const report of ['usage', 'history']) expect((await keysBeside(report, issued.id)).code).toBe(0);
  expect((await keysBeside('revoke', beside.id)).code).toBe(0);
  const rotated = await keysBeside('rotate', beside.id);
  expect([rotated.code, rotated.output]).toEqual([
    1,
    expect.stringContaining('is revoked, so nothing was changed'),
  ]);
  await expect.poll(async () => (await call(list.path)).status).toBe(401);
});

test('keys show and keys unban need no Redis, even where REDIS_URL names one', async () => {
  const environment = { DATABASE_URL: await createTestDatabase(), REDIS_URL: 'redis://127.0.0.1:1' };
  const { id } = await runKeys(environment, 'create', '--name', 'x', '--plan', 'free');
  await execute(environment.DATABASE_URL, 'UPDATE api_keys SET banned_until = now() WHERE id = $1', [id]);
  const show = await runInProcess(['keys', 'show', id], environment);
  expect(show.code).toBe(0);
  expect(show.output).toMatch(/^Last used +-\nLast 30 days +-\nNext ban +300 s$/m);
  expect(await runKeys(environment, 'unban', id)).toMatchObject({ bannedUntil: null });
});

test('a command on keys loads none of the packages that only a service needs, which would make it slower', async () => {
  const hidden = ['fastify', 'prom-client', 'trpc-to-openapi', '@prisma/client/runtime/client'];
  const program = runNode(
    [...hidden.flatMap((name) => withoutModule(name)), programOf('cli'), 'keys', 'list'],
    {
      DATABASE_URL: asService(await createTestDatabase()),
    },
  );
  expect([await program.ended, program.output()]).toEqual([0, expect.stringMatching(/^ID /)]);
});

test('keys create on a read-only or unreachable database prints one line with the reason and the remedy', async () => {
  const url = new URL(await createTestDatabase());
  await execute(url.href, `ALTER DATABASE ${url.pathname.slice(1)} SET default_transaction_read_only = on`);
  const create = async () => {
    const args = ['keys', 'create', '--name', 'x', '--plan', 'free'];
    const { code, output } = await runInProcess(args, { DATABASE_URL: url.href });
    expect(code).toBe(4);
    return output;
  };
  expect(await create()).toMatch(/^The database cannot be used \(.*read-only.*\).*DATABASE_URL.*\n$/);
  url.port = '1';
  expect(await create()).toMatch(/^The database cannot be used \(.*ECONNREFUSED.*\).*DATABASE_URL.*\n$/);
});

test('a key that is issued without scopes has those of defaultScopes, as the help says', async () => {
  const [first, ...others] = definition.scopes;
  expect(others).not.toEqual([]);
  const environment = { DATABASE_URL: await createTestDatabase() };
  const create = ['keys', 'create', '--name', 'shop', '--plan', definition.developmentPlan];
  const createFor = async (store: Definition, ...args: string[]) =>
    readJson(await runInProcess([...create, '--json', ...args], environment, { definition: store })).scopes;
  const fewer: Definition = { ...definition, defaultScopes: [first] };
  expect(await createFor(fewer)).toEqual([first]);
  expect(await createFor(fewer, '--scopes', definition.scopes.join())).toEqual(definition.scopes);
  expect(await createFor(definition)).toEqual(definition.scopes);
  const { output } = await runInProcess(['keys', 'create', '--help'], {}, { definition: fewer });
  expect(output.replaceAll(/\s+/g, ' ')).toContain(`by default ${first}`);
});
