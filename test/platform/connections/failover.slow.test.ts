import { afterEach, beforeEach, describe, test } from 'vitest';
import { type Load, startLoad } from '../../support/create-load.js';
import { hasHaproxy } from '../../support/haproxy.js';
import { PostgresServer } from '../../support/postgres-server.js';
import { type PrimaryProxy, startPrimaryProxy } from '../../support/primary-proxy.js';
import { createCaller, startService, type TestService } from '../../support/test-service.js';

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
