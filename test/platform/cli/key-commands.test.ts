import { expect, test } from 'vitest';
import { runInProcess } from '../../support/command.js';
import { execute } from '../../support/execute.js';
import { withoutModule } from '../../support/missing-module.js';
import { list } from '../../support/operations-under-test.js';
import { run, runKeys, runNode, untilListening } from '../../support/process.js';
import { findRedis } from '../../support/redis.js';
import { setUpServiceProcesses } from '../../support/service-processes.js';
import { asService } from '../../support/service-role.js';
import { createCaller, createTestDatabase } from '../../support/test-service.js';

const processes = setUpServiceProcesses();
const redis = await findRedis();

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
    key: expect.stringMatching(/^as_test_/),
  });

  const url = await untilListening(processes.start());
  expect((await createCaller({ url, key: issued.key })(list.path)).status).toBe(200);
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
  expect((await call(list.path)).status).toBe(200);
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

test('keys show reports the ban, and keys unban lifts it, beside a service that counts in memory', async () => {
  const environment = { DATABASE_URL: await createTestDatabase() };
  const url = await untilListening(processes.start(environment));
  const limits = ['--plan', 'enterprise', '--per-minute', '2', '--per-day', '50'];
  const { id, key } = await runKeys(environment, 'create', '--name', 'greedy', ...limits);
  const call = createCaller({ url, key });
  const began = Date.now();
  for (let n = 0; n < 4; n += 1) await call(list.path);
  expect((await call(list.path)).body.code).toBe('api_key_banned');
  // The service stores the ban after it has begun.
  const show = () => runKeys(environment, 'show', id);
  await expect.poll(show).toMatchObject({ banSeconds: 300, nextBanSeconds: 600 });
  expect(Date.parse((await show()).bannedUntil)).toBeGreaterThanOrEqual(began + 300_000);
  expect(await runKeys(environment, 'unban', id)).toMatchObject({ bannedUntil: null, banSeconds: null });
  const code = async () => (await call(list.path)).body.code;
  await expect.poll(code, { interval: 500 }).toBe('rate_limit_exceeded');
});

test.runIf(redis)(
  'without REDIS_URL, keys show shows a ban of a service that uses Redis, and keys unban ends it',
  async () => {
    const environment = { DATABASE_URL: await createTestDatabase() };
    const service = processes.start({ ...environment, REDIS_URL: redis?.url ?? '', APP_ENV: 'staging' });
    const url = await untilListening(service);
    const limits = ['--plan', 'enterprise', '--per-minute', '2', '--per-day', '50'];
    const { id, key } = await runKeys(environment, 'create', '--name', 'greedy', ...limits);
    const call = createCaller({ url, key });
    const code = async () => (await call(list.path)).body.code;
    await expect.poll(code, { interval: 10 }).toBe('api_key_banned');
    const state = async () => (await runKeys(environment, 'show', id)).state;
    await expect.poll(state).toBe('banned');
    expect(await runKeys(environment, 'unban', id)).toMatchObject({ state: 'active', bannedUntil: null });
    await expect.poll(code, { interval: 500 }).toBe('rate_limit_exceeded');
  },
);

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
  const program = runNode([...hidden.flatMap((name) => withoutModule(name)), 'dist/cli.js', 'keys', 'list'], {
    DATABASE_URL: asService(await createTestDatabase()),
  });
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
