import { createCaller, type Program, untilListening } from '@animal-store/platform/testing';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { type Load, startLoad } from '../../packages/platform/test/support/create-load.js';
import {
  canCreateNamespaces,
  NetworkNamespace,
} from '../../packages/platform/test/support/network-namespace.js';
import { PostgresServer } from '../../packages/platform/test/support/postgres-server.js';
import { programOf, runKeys, UNREACHED_LIMITS } from '../support/programs.js';

let server: PostgresServer;
let network: NetworkNamespace;
let service: Program;
let load: Load;

describe.runIf(canCreateNamespaces())(
  'packets between the service and PostgreSQL vanish during creates',
  () => {
    beforeEach(async () => {
      server = await PostgresServer.start({ listen_addresses: '*' });
      network = new NetworkNamespace();
      const issue = ['create', '--name', 'load', ...UNREACHED_LIMITS];
      const { key } = await runKeys({ DATABASE_URL: server.url, APP_ENV: 'staging' }, ...issue);
      const url = new URL(server.url);
      url.hostname = network.hostAddress;
      service = network.run(process.execPath, [programOf('main')], {
        DATABASE_URL: url.href,
        APP_ENV: 'staging',
        HOST: network.address,
        PORT: '0',
      });
      load = startLoad(createCaller({ url: await untilListening(service), key }));
      await load.untilAcknowledged(100);
    });
    afterEach(async () => {
      await load.stop();
      service.child.kill('SIGTERM');
      await service.ended;
      network.close();
      await server.close();
    });

    test('of all connections, for a while: 503 and nothing else, and back', async ({ annotate }) => {
      network.dropPort(server.port);
      await load.untilUnavailable(30);
      network.heal();
      const healedAt = performance.now();
      await load.untilAcknowledged(500);
      await load.stop();
      const recoveredMs = load.lastFailureAt - healedAt;
      await load.expectNothingLost(server);
      await annotate(
        `the last 503 came ${Math.round(recoveredMs)} ms after the last loss; ${load.summary()}`,
      );
    });

    test('of the existing connections, for good: 503 and nothing else, and back on new ones', async ({
      annotate,
    }) => {
      const connections = await server.query<{ port: number }>(
        `SELECT client_port AS port FROM pg_stat_activity WHERE client_addr = '${network.address}'`,
      );
      const droppedAt = performance.now();
      network.dropConnections(connections.map(({ port }) => port));
      await load.untilUnavailable();
      await load.untilAcknowledged(500);
      await load.stop();
      const recoveredMs = load.lastFailureAt - droppedAt;
      await load.expectNothingLost(server);
      await annotate(
        `${connections.length} connections; the last 503 came ${Math.round(recoveredMs)} ms after the loss; ${load.summary()}`,
      );
    });
  },
);
