import { execute, untilListening } from '@animal-store/platform/testing';
import { expect, test } from 'vitest';
import { TABLE } from '#operations-under-test';
import { run } from '../support/process.js';
import { createTestDatabase } from '../support/test-service.js';

test('a table without its row in insert_turns ends the start with one line, whose INSERT lets the next start serve', async () => {
  const url = await createTestDatabase();
  await execute(url, `DELETE FROM insert_turns WHERE table_name = '${TABLE}'`);
  const environment = { DATABASE_URL: url, PORT: '0' };
  const refused = run('main', [], environment);
  const insert = `INSERT INTO "public"."insert_turns" (table_name) VALUES ('${TABLE}');`;
  expect(await refused.ended).toBe(1);
  const lines = refused.output().trim().split('\n');
  expect(lines).toEqual([expect.stringContaining(`lacks the turn of ${TABLE}, `)]);
  expect(lines[0]).toContain(insert);
  await execute(url, insert);
  const service = run('main', [], environment);
  await untilListening(service);
  service.child.kill();
  expect(await service.ended).toBe(0);
});
