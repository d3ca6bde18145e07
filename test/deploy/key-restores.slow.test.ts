import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createCaller, createTemporaryFolder, execute, runCommand } from '@animal-store/platform/testing';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { list } from '#operations-under-test';
import { hasPostgresTools, SystemPostgres } from '../../packages/platform/test/support/system-postgres.js';
import { startService } from '../support/service.js';

/** The contract's two seconds, and room for a busy machine */
const FELT = { timeout: 2_000 + 5_000 };

let server: SystemPostgres;
let folder: string;

const runTool = async (command: string, ...args: readonly string[]) => {
  const program = runCommand(command, args, {});
  expect(await program.ended, program.output()).toBe(0);
};
const dumpTo = async (name: string, url: string) => {
  const file = join(folder, name);
  await runTool('pg_dump', '--format=custom', '-f', file, url);
  return file;
};

/** What is on record in a database, and its keys */
const readAll = (url: string) =>
  Promise.all([
    execute(url, 'SELECT * FROM api_key_history ORDER BY id'),
    execute(url, 'SELECT * FROM api_keys ORDER BY id'),
  ]);

describe.skipIf(!hasPostgresTools())('restores', () => {
  beforeAll(async () => {
    server = await SystemPostgres.start();
    folder = await createTemporaryFolder();
  });
  afterAll(async () => {
    await server.close();
    await rm(folder, { recursive: true, force: true });
  });

  test('keys have the state that a restore gives them within two seconds, revoked or valid', async () => {
    const url = server.urlOf();
    const service = await startService({ databaseUrl: url });
    onTestFinished(() => service.close());
    const { apiKey, key } = await service.keys.create({ name: 'x', plan: 'business' });
    const status = async () => (await createCaller({ url: service.url, key })(list.path)).status;
    await expect.poll(status).toBe(200);
    const valid = await dumpTo('valid', url);
    await service.keys.revoke(apiKey.id, new Date());
    await expect.poll(status, FELT).toBe(401);
    const revoked = await dumpTo('revoked', url);
    const restore = (...args: string[]) => runTool('pg_restore', '-d', url, ...args);
    await restore('--clean', '--if-exists', '--single-transaction', valid);
    await expect.poll(status, FELT).toBe(200);
    await restore('--clean', '--if-exists', '--single-transaction', revoked);
    await expect.poll(status, FELT).toBe(401);
    // Without triggers
    const restoreRows = async (dump: string) => {
      await execute(url, 'TRUNCATE api_keys CASCADE');
      await restore('--data-only', '--disable-triggers', '-t', 'api_keys', dump);
    };
    await restoreRows(valid);
    await expect.poll(status, FELT).toBe(200);
    await restoreRows(revoked);
    await expect.poll(status, FELT).toBe(401);
  });

  test('the steps of docs/operations.md restore the data into a migrated database, with a record that is not doubled', async () => {
    const url = server.urlOf();
    const service = await startService({ databaseUrl: url });
    const { apiKey } = await service.keys.create({ name: 'on record', plan: 'free' });
    await service.keys.setPlanAll([apiKey.id], { plan: 'pro' });
    await service.close();
    const expected = await readAll(url);
    expect(expected[0].length).toBeGreaterThan(2);
    const dump = await dumpTo('data', url);
    await execute(url, 'CREATE DATABASE restored');
    const restored = Object.assign(new URL(url), { pathname: '/restored' }).href;
    const [, section = ''] = readFileSync('docs/operations.md', 'utf8').split('\n### Data only\n');
    const [, steps = ''] = /^```\n(.*?)^```$/ms.exec(section) ?? [];
    expect(steps).toContain('animal-store.dump');
    const script = steps.replaceAll('animal-store.dump', dump).replace(/^npm run migrate -- .*$/m, '');
    const program = runCommand('bash', ['-ec', script], { DATABASE_URL: restored });
    expect(await program.ended, program.output()).toBe(0);
    expect(await readAll(restored)).toEqual(expected);
  });
});
