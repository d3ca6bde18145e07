import { readFileSync } from 'node:fs';
import { createCaller, post } from '@animal-store/platform/testing';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { create, TABLE } from '#operations-under-test';
import { type Load, startLoad } from '../../packages/platform/test/support/create-load.js';
import { hasHaproxy } from '../../packages/platform/test/support/haproxy.js';
import { PostgresServer } from '../../packages/platform/test/support/postgres-server.js';
import { type PrimaryProxy, startPrimaryProxy } from '../../packages/platform/test/support/primary-proxy.js';
import { startService, type TestService } from '../support/service.js';

let primary: PostgresServer;
let standby: PostgresServer;
let haproxy: PrimaryProxy;
let service: TestService;
let load: Load;

describe.skipIf(!hasHaproxy())('a synchronous standby is promoted behind one port during creates', () => {
  beforeEach(async () => {
    primary = await PostgresServer.start();
    standby = await primary.startStandby();
    haproxy = await startPrimaryProxy([primary, standby]);
    const url = new URL(primary.url);
    url.port = String(haproxy.port);
    service = await startService({ databaseUrl: url.href });
    load = startLoad(createCaller(service));
  });
  afterEach(async () => {
    await load.stop();
    await service.close();
    await haproxy.close();
    await standby.close();
    await primary.close();
  });

  test.for([
    { event: 'after the primary was killed', signal: 'SIGKILL' },
    { event: 'after the primary was stopped for a switchover', signal: 'SIGINT' },
  ] as const)(
    '$event: no acknowledged create is lost, no status but 503 in between',
    async ({ signal }, { annotate }) => {
      await load.untilAcknowledged(100);
      await primary.end(signal);
      await load.untilUnavailable();
      await standby.query('SELECT pg_promote()');
      const promotedAt = performance.now();
      await load.untilAcknowledged(500);
      await load.stop();
      const recoveredMs = load.lastFailureAt - promotedAt;
      await load.expectNothingLost(standby);
      await annotate(
        `the last 503 came ${Math.round(recoveredMs)} ms after the promotion; ${load.summary()}`,
      );
    },
  );
});

/** The statements of docs/availability.md */
const [, SKIP_IDS = ''] =
  /^## Skip ids$.*?^```sql\n(.*?)^```$/ms.exec(readFileSync('docs/availability.md', 'utf8')) ?? [];

test('an asynchronous promotion loses creates, and the documented statements keep their ids from being given again', async () => {
  const former = await PostgresServer.start();
  onTestFinished(() => former.close());
  const promoted = await former.startStandby();
  onTestFinished(() => promoted.close());
  await former.end('SIGINT');
  await former.run({});
  const before = await startService({ databaseUrl: former.url });
  const createOne = async (on: TestService) => {
    const { status, body } = await createCaller(on)(create.path, post(create.body));
    expect(status).toBe(201);
    return Number(body.id);
  };
  const replicated = await createOne(before);
  const countReplicated = async () =>
    (await promoted.query(`SELECT FROM ${TABLE} WHERE id = ${replicated}`)).length;
  await expect.poll(countReplicated).toBe(1);
  // It lacks what comes now.
  await promoted.end('SIGINT');
  let lost = replicated;
  for (let n = 0; n < 40; n += 1) lost = await createOne(before);
  await before.close();
  await former.end('SIGKILL');

  await promoted.run();
  await promoted.query('SELECT pg_promote()');
  const sequence = `pg_get_serial_sequence('${TABLE}', 'id')`;
  const [next] = await promoted.query<{ id: string }>(`SELECT nextval(${sequence}) AS id`);
  expect(Number(next?.id)).toBeLessThanOrEqual(lost);
  await promoted.query(SKIP_IDS);
  const after = await startService({ databaseUrl: promoted.url });
  onTestFinished(() => after.close());
  expect(await createOne(after)).toBeGreaterThan(lost);
});
