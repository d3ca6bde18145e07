import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { type EveryCall, listEveryCall, nameOf } from '../../support/every-call.js';
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

afterAll(closeNodes);

/** CANNOT_COMMIT_SECONDS=60 makes each fault last a minute. */
const SECONDS = Number(process.env.CANNOT_COMMIT_SECONDS || 12);
/** How often every read is called over every protocol, and every write over one of them */
const INTERVAL_MS = 100;
/** As docs/capacity.md promises: the sizes of the four pools, and one more for each */
const MAX_CONNECTIONS = 12 + 4;

/** What operators' machines poll, and what tells them how the service is */
const PROBES = ['/health/ready', '/metrics'];

async function cannotCommit(server: PostgresServer) {
  // Nobody by this name ever acknowledges a commit.
  await server.query("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
  await server.reload();
  return async () => {
    await server.query('ALTER SYSTEM RESET synchronous_standby_names');
    await server.reload();
  };
}

async function keepRowsLocked(server: PostgresServer) {
  const locker = new pg.Client(server.url);
  await locker.connect();
  for (const sql of ['BEGIN', ...[TABLE, OTHER_TABLE].map((table) => `SELECT FROM ${table} FOR UPDATE`)])
    await locker.query(sql);
  return () => locker.end();
}

interface Outcome {
  /** What each read, each write and each probe was answered with */
  readonly statuses: ReadonlyMap<string, ReadonlySet<number>>;
  readonly counts: { readonly reads: number; readonly writes: number; readonly probes: number };
  /** The most that there were at once */
  readonly connections: number;
  readonly p99Ms: number;
}

/** Calls everything for SECONDS, reads one after the other and writes beside them. */
async function callEverything(
  { url, call }: { readonly url: string; readonly call: Caller },
  calls: readonly EveryCall[],
  countConnections: () => Promise<number>,
): Promise<Outcome> {
  const statuses = new Map<string, Set<number>>();
  const note = (name: string, status: number) =>
    statuses.set(name, (statuses.get(name) ?? new Set()).add(status));
  const reads = calls.filter(({ isRead }) => isRead);
  const writes = calls.filter(({ isRead }) => !isRead);
  const operations = [...new Set(writes.map(({ operation }) => operation))];
  const durationsMs: number[] = [];
  const pending: Promise<unknown>[] = [];
  let connections = 0;
  let probes = 0;
  const endsAt = performance.now() + SECONDS * 1_000;
  for (let n = 0; performance.now() < endsAt; n += 1) {
    for (const operation of operations) {
      const protocols = writes.filter((each) => each.operation === operation);
      const write = protocols[n % protocols.length] as EveryCall;
      pending.push(write.send(call).then((status) => note(nameOf(write), status)));
    }
    for (const read of reads) {
      const startedAt = performance.now();
      note(nameOf(read), await read.send(call));
      durationsMs.push(performance.now() - startedAt);
    }
    for (const path of PROBES) note(path, (await fetch(url + path)).status);
    probes += PROBES.length;
    connections = Math.max(connections, await countConnections());
    await delay(INTERVAL_MS);
  }
  await Promise.all(pending);
  durationsMs.sort((a, b) => a - b);
  return {
    statuses,
    counts: { reads: durationsMs.length, writes: pending.length, probes },
    connections,
    p99Ms: durationsMs[Math.ceil(0.99 * durationsMs.length) - 1] ?? 0,
  };
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
    // The examples name some of them.
    for (let n = 0; n < 10; n += 1) expect(await createOne()).toBe(201);
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
