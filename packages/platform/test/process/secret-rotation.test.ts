import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { canStartRedis, startRedis } from '@animal-store/limits/testing';
import {
  createCaller,
  createTemporaryFolder,
  execute,
  post,
  untilListening,
} from '@animal-store/platform/testing';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { create, definition, list, newItem } from '#operations-under-test';
import { applyGrants } from '../../src/migrations/grants.js';
import { runKeys, UNREACHED_LIMITS } from '../support/process.js';
import { setUpServiceProcesses } from '../support/service-processes.js';
import { createTestDatabase } from '../support/test-service.js';

const processes = setUpServiceProcesses();
const folder = await createTemporaryFolder();

/** Writes a secret as a mounted volume does: the path stays, and what it names is another text. */
const writeSecret = async (name: string, text: string) => {
  const path = join(folder, name);
  await writeFile(path, `${text}\n`);
  return path;
};

test('a password that is rotated in DATABASE_URL_FILE is used for new connections, without a restart', async () => {
  const ownerUrl = await createTestDatabase();
  const role = `rotated_${process.pid}`;
  await execute(ownerUrl, `CREATE ROLE ${role} LOGIN PASSWORD 'before'`);
  onTestFinished(async () => void (await execute(ownerUrl, `DROP OWNED BY ${role}; DROP ROLE ${role}`)));
  await applyGrants(definition.identity.grants, ownerUrl, role, 'service');
  const withPassword = (password: string) =>
    Object.assign(new URL(ownerUrl), { username: role, password }).href;
  const { key } = await runKeys(
    { DATABASE_URL: ownerUrl, APP_ENV: 'staging' },
    ...['create', '--name', 'x', ...UNREACHED_LIMITS],
  );
  const DATABASE_URL_FILE = await writeSecret('database-url', withPassword('before'));
  const service = processes.start({ DATABASE_URL_FILE, APP_ENV: 'staging' });
  const call = createCaller({ url: await untilListening(service), key });
  expect((await call(list.path)).status).toBe(200);
  await execute(ownerUrl, `ALTER ROLE ${role} PASSWORD 'after'`);
  const endAll = () =>
    execute(
      ownerUrl,
      `SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity WHERE usename = '${role}'`,
    );
  await endAll();
  // Nothing that could be used is in the file yet.
  await writeSecret('database-url', '');
  await expect.poll(async () => (await call(list.path)).status).toBe(503);
  await writeSecret('database-url', withPassword('after'));
  await expect.poll(async () => (await call(list.path)).status).toBe(200);
  const createOne = async () => (await call(create.path, post(newItem('after')))).status;
  await expect.poll(createOne).toBe(201);
  await expect.poll(async () => (await call('/health/ready', { key: null })).status).toBe(200);
});

test.skipIf(!canStartRedis())(
  'a password that is rotated in REDIS_URL_FILE is used for new connections, without a restart',
  async () => {
    const redis = await startRedis(['--requirepass', 'before']);
    if (redis === undefined) throw new Error('No Redis');
    onTestFinished(() => redis.close());
    const urlWith = (password: string) => redis.url.replace('//', `//:${password}@`);
    const admin = new Redis(urlWith('before'));
    onTestFinished(() => admin.disconnect());
    const REDIS_URL_FILE = await writeSecret('redis-url', urlWith('before'));
    const service = processes.start({ DATABASE_URL: await createTestDatabase(), REDIS_URL_FILE });
    const call = createCaller({ url: await untilListening(service), key: '' });
    const readLimits = async () => (await call('/health/ready', { key: null })).body.limits;
    await expect.poll(readLimits).toBe('redis');
    await admin.config('SET', 'requirepass', 'after');
    await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await expect.poll(readLimits).toBe('degraded');
    await writeSecret('redis-url', urlWith('after'));
    await expect.poll(readLimits).toBe('redis');
  },
);
