import { execute, runNode } from '@animal-store/platform/testing';
import { expect, test } from 'vitest';
import { createTestDatabase } from '../support/service.js';

/** As the npm scripts start them */
async function run(databaseUrl: string, ...args: string[]) {
  const program = runNode(['scripts/tools.js', ...args], { DATABASE_URL: databaseUrl });
  return [await program.ended, program.output()];
}

test('npm run migrate:check says where the database differs, and exits with 1 only then', async () => {
  const url = await createTestDatabase();
  expect(await run(url, 'check', '--database')).toEqual([0, expect.stringContaining('agrees')]);
  await execute(url, 'ALTER TABLE api_keys ADD COLUMN colour text');
  expect(await run(url, 'check', '--database')).toEqual([1, expect.stringContaining('colour')]);
});

test('npm run migrate:draft finds nothing that the migrations lack, whatever else the database has', async () => {
  const url = await createTestDatabase();
  await execute(url, 'CREATE TABLE boats (id bigint PRIMARY KEY)');
  expect(await run(url, 'draft', 'nothing')).toEqual([0, expect.stringMatching(/^Nothing to draft/)]);
});
