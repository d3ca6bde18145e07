import { readFileSync } from 'node:fs';
import { createCaller, execute, post, runCommand } from '@animal-store/platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { create, list, OTHER_TABLE, TABLE } from '#operations-under-test';
import { PostgresServer } from '../../packages/platform/test/support/postgres-server.js';
import { hasPostgresTools, SystemPostgres } from '../../packages/platform/test/support/system-postgres.js';
import { startService } from '../support/service.js';

const documented = readFileSync('docs/availability.md', 'utf8');
const [, steps = ''] = /^\*\*Logical replication\*\*.*?^```\n(.*?)^```$/ms.exec(documented) ?? [];
const [, skipIds = ''] = /^## Skip ids$.*?^```sql\n(.*?)^```$/ms.exec(documented) ?? [];
/** Before the service stops, and while it is stopped */
const [, begin = '', finish = ''] = /(^# 2\..*?)(^# 4\..*)/ms.exec(steps) ?? [];
/** The question of step 4 */
const HAS_EVERYTHING = /^psql .*pg_stat_replication.*$/m;

let old: SystemPostgres;
let replacement: PostgresServer;

describe.skipIf(!hasPostgresTools())('logical replication to another major version', () => {
  beforeAll(async () => {
    old = await SystemPostgres.start({ wal_level: 'logical' });
    replacement = await PostgresServer.start();
  });
  afterAll(async () => {
    await replacement.close();
    await old.close();
  });

  const follow = async (script: string) => {
    const environment = { OLD: old.urlOf(), NEW: replacement.url };
    const program = runCommand('bash', ['-ec', script], environment);
    expect(await program.ended, program.output()).toBe(0);
    return program.output();
  };
  /** Runs the question after which the documents say what to wait for. */
  const untilSays = async (question: RegExp, answer: string) => {
    const [command = expect.unreachable('the question is gone')] = question.exec(steps) ?? [];
    await expect
      .poll(async () => (await follow(command)).trim(), { timeout: 30_000, interval: 200 })
      .toBe(answer);
  };

  test('the documented steps bring data, keys and their record, and ids go on behind those that were given', async ({
    annotate,
  }) => {
    const before = await startService({ databaseUrl: old.urlOf() });
    const { apiKey, key } = await before.keys.create({ name: 'moved', plan: 'business' });
    await before.keys.setPlanAll([apiKey.id], { plan: 'pro' });
    const createOne = async (url: string) => {
      const { status, body } = await createCaller({ url, key })(create.path, post(create.body));
      expect(status).toBe(201);
      return Number(body.id);
    };
    await createOne(before.url);
    await follow(begin);
    await untilSays(/^psql .*srsubstate.*$/m, '0');
    // As after an error: then the other subscription alone has everything.
    await replacement.query('ALTER SUBSCRIPTION store DISABLE');
    await untilSays(HAS_EVERYTHING, 'f');
    await replacement.query('ALTER SUBSCRIPTION store ENABLE');
    const last = await createOne(before.url);
    const readAll = (url: string) =>
      Promise.all(
        [TABLE, OTHER_TABLE, 'api_keys', 'api_key_history', 'idempotent_creates'].map((table) =>
          execute(url, `SELECT * FROM ${table} ORDER BY 1`),
        ),
      );

    await before.close();
    const stoppedAt = performance.now();
    await untilSays(HAS_EVERYTHING, 't');
    const expected = await readAll(old.urlOf());
    await follow(finish);
    expect(await readAll(replacement.url)).toEqual(expected);
    await replacement.query(skipIds);
    const after = await startService({ databaseUrl: replacement.url });
    expect((await createCaller({ url: after.url, key })(list.path)).status).toBe(200);
    expect(await createOne(after.url)).toBeGreaterThan(last);
    await annotate(`${Math.round((performance.now() - stoppedAt) / 100) / 10} s without service`);
    await after.close();
  });
});
