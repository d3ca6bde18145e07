import pg from 'pg';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { callEverything, listEveryCall, nameOf, PROBES } from '../../support/every-call.js';
import {
  create,
  list,
  newItem,
  OTHER_TABLE,
  REUSE_EXAMPLES,
  TABLE,
} from '../../support/operations-under-test.js';
import { PostgresServer } from '../../support/postgres-server.js';
import { runKeys, UNREACHED_LIMITS } from '../../support/process.js';
import { type Caller, createCaller, post } from '../../support/test-service.js';
import { closeNodes, startNode } from '../../support/two-nodes.js';
import { until } from '../../support/until.js';

afterAll(closeNodes);

/** CANNOT_COMMIT_SECONDS=60 makes each fault last a minute. */
const SECONDS = Number(process.env.CANNOT_COMMIT_SECONDS || 12);
/** As docs/capacity.md promises: the sizes of the four pools, and one more for each */
const MAX_CONNECTIONS = 12 + 4;

async function cannotCommit(server: PostgresServer) {
  // Nobody by this name ever acknowledges a commit.
  await server.query("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
  await server.reload();
  // The checkpointer lets commits wait, once it has read that.
  const client = new pg.Client({ connectionString: server.url, application_name: 'waiting' });
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
  return async () => {
    await server.query('ALTER SYSTEM RESET synchronous_standby_names');
    await server.reload();
    await writing;
    await client.end();
  };
}

async function keepRowsLocked(server: PostgresServer) {
  const locker = new pg.Client(server.url);
  await locker.connect();
  for (const sql of ['BEGIN', ...[TABLE, OTHER_TABLE].map((table) => `SELECT FROM ${table} FOR UPDATE`)])
    await locker.query(sql);
  return () => locker.end();
}

/** Reads on from the last id that it saw. */
function createReader(call: Caller) {
  const seen: number[] = [];
  return {
    seen,
    async readOn() {
      const { status, body } = await call(`${list.path}?limit=100&cursor=${seen.at(-1) ?? 0}`);
      expect(status).toBe(200);
      for (const { id } of body) seen.push(id);
    },
  };
}

/** What PostgreSQL goes on answering in, and whether all writes meet it, or only those of rows that are there. */
const FAULTS = [
  { fault: 'PostgreSQL cannot commit', begin: cannotCommit, meetsAll: true },
  { fault: 'somebody keeps all rows of the store locked', begin: keepRowsLocked, meetsAll: false },
] as const;

test.for(FAULTS)(
  'while $fault, every read is answered, readiness is 200 and what writes there is a 503, within the sizes of the pools; afterwards a reader has missed nothing',
  { timeout: 90_000 + SECONDS * 2_000 },
  async ({ begin, meetsAll }, { annotate }) => {
    const server = await PostgresServer.start();
    onTestFinished(() => server.close());
    const environment = { DATABASE_URL: server.url, ANONYMOUS_PER_MINUTE: '1000000' };
    const issue = (name: string) => runKeys(environment, 'create', '--name', name, ...UNREACHED_LIMITS);
    const [{ key }, endable] = [await issue('x'), await issue('endable')];
    const url = await startNode(environment);
    const call = createCaller({ url, key });
    const createOne = async () => (await call(create.path, post(newItem('One more')))).status;
    const calls = await listEveryCall(call, endable);
    await server.query(REUSE_EXAMPLES);
    const reader = createReader(call);
    await reader.readOn();
    const countConnections = async () => {
      const sql = "SELECT count(*)::int FROM pg_stat_activity WHERE application_name = 'animal-store'";
      const [row] = await server.query<{ count: number }>(sql);
      return row?.count ?? 0;
    };

    const end = await begin(server);
    const { statuses, counts, connections, p99Ms } = await callEverything(
      { url, call },
      calls,
      SECONDS,
      countConnections,
    );
    await reader.readOn();
    await end();

    const outcomesOf = (names: readonly string[]) =>
      names.map((name) => [name, ...(statuses.get(name) ?? [])]);
    const reads = [...PROBES, ...calls.filter(({ isRead }) => isRead).map(nameOf)];
    expect(outcomesOf(reads)).toEqual(reads.map((name) => [name, 200]));
    const writes = outcomesOf(calls.filter(({ isRead }) => !isRead).map(nameOf));
    const failed = writes.filter((outcome) => outcome.includes(503));
    expect(failed).toEqual(failed.map(([name]) => [name, 503]));
    if (meetsAll) expect(failed).toEqual(writes);
    else expect(failed.filter(([name]) => String(name).startsWith(create.name))).toEqual([]);
    expect(failed.length).toBeGreaterThan(0);
    expect(connections).toBeLessThanOrEqual(MAX_CONNECTIONS);

    const endedAt = performance.now();
    await expect.poll(createOne, { interval: 20 }).toBe(201);
    const recoveredMs = Math.round(performance.now() - endedAt);
    await expect.poll(countConnections).toBeLessThanOrEqual(12);
    for (let before = -1; before < reader.seen.length; ) {
      before = reader.seen.length;
      await reader.readOn();
    }
    const rows = await server.query<{ id: number }>(`SELECT id::int FROM ${TABLE} ORDER BY id`);
    expect(reader.seen).toEqual(rows.map(({ id }) => id));
    await annotate(
      `${JSON.stringify(counts)}; at most ${connections} connections; p99 of reads ${p99Ms.toFixed(0)} ms; created again after ${recoveredMs} ms`,
    );
  },
);
