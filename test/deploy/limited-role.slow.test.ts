import {
  type Caller,
  createCaller,
  execute,
  type Program,
  untilListening,
} from '@animal-store/platform/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { definition } from '#operations-under-test';
import { applyGrants } from '../../packages/platform/src/migrations/grants.js';
import { applyMigrations } from '../../packages/platform/src/migrations/migration-runner.js';
import { type EveryCall, listEveryCall, nameOf } from '../../packages/platform/test/support/every-call.js';
import {
  canCreateNamespaces,
  NetworkNamespace,
} from '../../packages/platform/test/support/network-namespace.js';
import { createRoles, hasPsql } from '../../packages/platform/test/support/roles.js';
import { hasPostgresTools, SystemPostgres } from '../../packages/platform/test/support/system-postgres.js';
import { programOf, runKeys, UNREACHED_LIMITS } from '../support/programs.js';

const ROLE = 'store';
const FEW = 6;
/** PostgreSQL keeps three more for superusers. */
const RESERVED = 3;
/** The documents promise half of it. */
const BOUND_MS = 60_000;

describe.runIf(canCreateNamespaces() && hasPostgresTools() && hasPsql())(
  'a firewall cuts all connections silently, and PostgreSQL allows no others meanwhile',
  () => {
    let server: SystemPostgres;
    let network: NetworkNamespace;
    let service: Program;
    let call: Caller;
    let calls: EveryCall[];

    const start = async (settings: Record<string, string>, limit: number) => {
      server = await SystemPostgres.startEmpty({ listen_addresses: '*', ...settings });
      const urls = createRoles(server.urlOf(), ROLE);
      await applyMigrations(urls.owner, definition.root);
      await applyGrants(definition.identity.grants, urls.owner, ROLE, 'service');
      await execute(server.urlOf(), `ALTER ROLE ${ROLE} CONNECTION LIMIT ${limit}`);
      const issue = (name: string) =>
        runKeys(
          { DATABASE_URL: urls.service, APP_ENV: 'staging' },
          ...['create', '--name', name, ...UNREACHED_LIMITS],
        );
      const { key } = await issue('load');
      const endable = await issue('endable');
      service = network.run(process.execPath, [programOf('main')], {
        DATABASE_URL: Object.assign(new URL(urls.service), { hostname: network.hostAddress }).href,
        APP_ENV: 'staging',
        HOST: network.address,
        PORT: '0',
      });
      call = createCaller({ url: await untilListening(service), key });
      calls = await listEveryCall(call, { key: endable.key, hint: endable.hint });
    };
    const listPorts = async () => {
      const rows = await execute<{ port: number }>(
        server.urlOf(),
        `SELECT client_port AS port FROM pg_stat_activity WHERE usename = '${ROLE}'`,
      );
      return rows.map(({ port }) => port);
    };
    /** The operations that are a 503, and what readiness says if it is one */
    const listUnavailable = async () => {
      const statuses = await Promise.all(
        calls.map(async (each) => [nameOf(each), await each.send(call)] as const),
      );
      const { status, body } = await call('/health/ready', { key: null });
      return [...statuses, [JSON.stringify(body), status] as const]
        .filter((answer) => answer[1] >= 500)
        .map(([name]) => name);
    };

    beforeEach(() => {
      network = new NetworkNamespace();
    });
    afterEach(async () => {
      service.child.kill('SIGTERM');
      await service.ended;
      network.close();
      await server.close();
    });

    test.for([
      { limit: 'CONNECTION LIMIT', settings: {}, most: FEW },
      { limit: 'max_connections', settings: { max_connections: String(FEW + RESERVED) }, most: -1 },
    ])(
      'with the roles of roles.sql, every operation and readiness are back once PostgreSQL has noticed ($limit)',
      { timeout: 3 * BOUND_MS },
      async ({ settings, most }, { annotate }) => {
        await start(settings, most);
        const fill = async () => {
          await Promise.all(calls.filter(({ isRead }) => isRead).map((each) => each.send(call)));
          return (await listPorts()).length;
        };
        await expect.poll(fill).toBe(FEW);
        network.dropConnections(await listPorts());
        const droppedAt = performance.now();
        await expect.poll(async () => (await listUnavailable()).length).toBeGreaterThan(0);
        await expect.poll(listUnavailable, { timeout: BOUND_MS, interval: 200 }).toEqual([]);
        await annotate(`served ${Math.round((performance.now() - droppedAt) / 1_000)} s after the loss`);
      },
    );
  },
);
