import { until } from '@animal-store/platform/testing';
import pg from 'pg';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { OTHER_TABLE, TABLE } from '#operations-under-test';
import { PostgresServer } from '../support/postgres-server.js';
import { runKeys, UNREACHED_LIMITS } from '../support/process.js';
import { asService } from '../support/service-role.js';
import { takeAllConnections } from '../support/take-connections.js';
import { closeNodes, startNode } from '../support/two-nodes.js';
import { expectFailure, type Failing, type FailureName, type Scene } from './failures.js';

afterAll(closeNodes);

/** FAILURE_SECONDS=60 makes each failure last a minute. */
const SECONDS = Number(process.env.FAILURE_SECONDS || 12);
const ENVIRONMENT = { ANONYMOUS_PER_MINUTE: '1000000' };

async function cannotCommit(server: PostgresServer) {
  // Nobody by this name ever acknowledges a commit.
  await server.query("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
  await server.reload();
  // The checkpointer lets commits wait, once it has read that.
  const client = new pg.Client({ connectionString: server.url, application_name: 'waiting' });
  client.on('error', () => {});
  await client.connect();
  const write = () => client.query("SELECT pg_logical_emit_message(true, 'a', 'b')");
  let writing = write();
  const isWaiting =
    "SELECT FROM pg_stat_activity WHERE application_name = 'waiting' AND wait_event = 'SyncRep'";
  await until(async () => {
    if ((await server.query(isWaiting)).length > 0) return true;
    const isDone = await Promise.race([writing.then(() => true), Promise.resolve(false)]);
    if (isDone) writing = write();
    return undefined;
  });
  const end = async () => {
    await server.query('ALTER SYSTEM RESET synchronous_standby_names');
    await server.reload();
    await writing;
    await client.end();
  };
  return { end };
}

async function rowsLocked(server: PostgresServer) {
  const locker = new pg.Client(server.url);
  locker.on('error', () => {});
  await locker.connect();
  for (const sql of ['BEGIN', ...[TABLE, OTHER_TABLE].map((table) => `SELECT FROM ${table} FOR UPDATE`)])
    await locker.query(sql);
  return { end: () => locker.end() };
}

async function readOnly(server: PostgresServer) {
  await server.query('ALTER SYSTEM SET default_transaction_read_only = on');
  await server.reload();
  const end = async () => {
    await server.query('ALTER SYSTEM RESET default_transaction_read_only');
    await server.reload();
  };
  return { end };
}

async function standby(primary: PostgresServer) {
  const server = await primary.startStandby();
  onTestFinished(() => server.close());
  const url = await startNode({ ...ENVIRONMENT, DATABASE_URL: asService(server.url) });
  expect(await (await fetch(`${url}/health/ready`)).json()).toMatchObject({ database: 'standby' });
  return { url, query: server.query.bind(server), end: () => server.query('SELECT pg_promote()') };
}

async function noConnection(server: PostgresServer, { query }: Scene) {
  const held: pg.Client[] = [];
  // The service loses its connections, also those that it was just opening, and others are faster.
  await until(async () => {
    await query(
      "SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity WHERE application_name = 'boatyard'",
    );
    await takeAllConnections(asService(server.url), held);
    return held.length === FOR_OTHERS || undefined;
  });
  return { end: () => Promise.all(held.map((client) => client.end())) };
}

const MAX_CONNECTIONS = 40;
/** PostgreSQL reserves three for superusers, and the test has one. */
const FOR_OTHERS = MAX_CONNECTIONS - 3 - 1;

const BEGIN = { cannotCommit, rowsLocked, readOnly, standby, noConnection } satisfies Partial<
  Record<FailureName, (server: PostgresServer, scene: Scene) => Promise<Failing>>
>;

test.for(Object.keys(BEGIN) as (keyof typeof BEGIN)[])(
  'PostgreSQL %s: for as long as it lasts, every operation is answered over every protocol as the document says, within the sizes of the pools',
  { timeout: 120_000 + SECONDS * 4_000 },
  async (failure, { annotate }) => {
    const server = await PostgresServer.start({ max_connections: String(MAX_CONNECTIONS) });
    onTestFinished(() => server.close());
    const issue = (name: string) =>
      runKeys({ DATABASE_URL: server.url }, 'create', '--name', name, ...UNREACHED_LIMITS);
    const [{ key }, endable] = [await issue('x'), await issue('endable')];
    const url = await startNode({ ...ENVIRONMENT, DATABASE_URL: asService(server.url) });
    // It is open all the time, because there may be no further connection.
    const admin = new pg.Client(server.url);
    admin.on('error', () => {});
    await admin.connect();
    onTestFinished(() => admin.end());
    const scene: Scene = { url, key, endable, query: async (sql) => (await admin.query(sql)).rows };
    await annotate(await expectFailure(failure, scene, () => BEGIN[failure](server, scene), SECONDS));
  },
);
