import {
  type Caller,
  createCaller,
  execute,
  post,
  rpcPath,
  type TestResponse,
  toolCall,
  untilListening,
} from '@animal-store/platform/testing';
import pg from 'pg';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { create as createOperation, insertSql, list, newItem, TABLE } from '#operations-under-test';
import { PostgresServer } from '../support/postgres-server.js';
import { run, runKeys, UNREACHED_LIMITS } from '../support/process.js';
import { createTestDatabase } from '../support/test-service.js';
import { closeNodes, startNode } from '../support/two-nodes.js';

afterAll(closeNodes);

/** ID_ORDER_CREATES=50000 makes each test a run of minutes. */
const CREATES = Number(process.env.ID_ORDER_CREATES || 4_000);
const CREATORS = 24;
/** Many times what it takes, also on a busy machine */
const TIMEOUT_MS = 120_000 + 20 * CREATES;

/** Commits take up to 2 ms more for each row: without turns, ids would become visible in another order again and again. */
const COMMIT_LATE = `
  CREATE FUNCTION commit_late() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM pg_catalog.pg_sleep(random() * 0.002); RETURN NULL; END $$;
  CREATE CONSTRAINT TRIGGER commit_late AFTER INSERT ON ${TABLE} DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION commit_late()`;

interface Nodes {
  readonly one: Caller;
  readonly two: Caller;
  /** Ends the first of them without a word. */
  killOne(): Promise<unknown>;
  /** A connection to their database */
  readonly database: pg.Client;
}

/** Two processes on a database, until the tests are over, as callers with a key that no limit stops. */
async function startNodes(databaseUrl: string): Promise<Nodes> {
  const environment = { DATABASE_URL: databaseUrl };
  await execute(databaseUrl, COMMIT_LATE);
  const { key } = await runKeys(environment, 'create', '--name', 'x', ...UNREACHED_LIMITS);
  const first = run('main', [], { ...environment, APP_ENV: 'staging', PORT: '0' });
  const killOne = () => {
    first.child.kill('SIGKILL');
    return first.ended;
  };
  onTestFinished(async () => void (await killOne()));
  const [one, two] = await Promise.all([untilListening(first), startNode(environment)]);
  const database = new pg.Client(databaseUrl);
  await database.connect();
  onTestFinished(() => database.end());
  return { one: createCaller({ url: one, key }), two: createCaller({ url: two, key }), killOne, database };
}

const isSuccess = (status: number) => status === 200 || status === 201;

/** The ways to create an item, with what each returns */
const CREATES_BY: readonly ((
  call: Caller,
  item: object,
  headers: Record<string, string>,
) => Promise<TestResponse>)[] = [
  (call, item, headers) => call(createOperation.path, post(item, headers)),
  (call, item, headers) => call(createOperation.trpc, post(item, headers)),
  (call, item, headers) => call('/mcp', toolCall(createOperation.name, item, headers)),
];

/** The nth of the creators uses a node, a protocol, and an Idempotency-Key or none: each combination twice. */
async function create({ one, two }: Nodes, n: number): Promise<number | string> {
  const call = n % 2 === 0 ? one : two;
  const headers = n % 4 < 2 ? {} : { 'idempotency-key': crypto.randomUUID() };
  const by = CREATES_BY[Math.floor(n / 4) % CREATES_BY.length] as (typeof CREATES_BY)[number];
  const { status, body } = await by(call, newItem(`Item ${n}`), headers);
  // Of a tool and of tRPC the result is within; a message has an id of its own.
  const { id } = body.result === undefined ? body : (body.result.data ?? body.result.structuredContent ?? {});
  return isSuccess(status) && id !== undefined ? id : `${status} ${JSON.stringify(body)}`;
}

/** Read on from a pet: over REST from one node, over tRPC from the other, and by SQL, which looks far more often. */
const READS: readonly ((nodes: Nodes, cursor: number) => Promise<{ id: number }[]>)[] = [
  async ({ one }, cursor) => (await one(`${list.path}?limit=100&cursor=${cursor}`)).body,
  async ({ two }, cursor) => (await two(rpcPath(list.name, { limit: 100, cursor }))).body.result.data,
  async ({ database }, cursor) =>
    (await database.query(`SELECT id::int FROM ${TABLE} WHERE id > $1 ORDER BY id LIMIT 100`, [cursor])).rows,
];

const byId = (ids: readonly number[]) => [...ids].sort((a, b) => a - b);

/**
 * What was created, by ascending id, and what readers saw that went on from the last id meanwhile.
 *
 * @param atHalf is called when half of the creates have been made
 */
async function createAndRead(nodes: Nodes, atHalf = async () => {}, reads = READS) {
  const created: number[] = [];
  const failures: string[] = [];
  const durationsMs: number[] = [];
  let isOver = false;
  let count = 0;
  const createMany = async (n: number) => {
    while (count < CREATES) {
      count += 1;
      if (count === CREATES / 2) await atHalf();
      const startedAt = performance.now();
      const id = await create(nodes, n).catch(String);
      durationsMs.push(performance.now() - startedAt);
      if (typeof id === 'number') created.push(id);
      else failures.push(id);
    }
  };
  const readOn = async (read: (typeof READS)[number]) => {
    const seen: number[] = [];
    for (;;) {
      const isLast = isOver;
      const items = await read(nodes, seen.at(-1) ?? 0);
      for (const { id } of items) seen.push(id);
      if (isLast && items.length === 0) return seen;
    }
  };
  const reading = Promise.all(reads.map(readOn));
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: CREATORS }, (_, n) => createMany(n)));
  const seconds = (performance.now() - startedAt) / 1000;
  isOver = true;
  durationsMs.sort((a, b) => a - b);
  const quantile = (share: number) => Math.round(durationsMs[Math.ceil(share * CREATES) - 1] as number);
  return {
    created: byId(created),
    failures,
    seen: await reading,
    summary: `${CREATES} creates in ${seconds.toFixed(1)} s: p50 ${quantile(0.5)} ms, p99 ${quantile(0.99)} ms, max ${quantile(1)} ms`,
  };
}

test('a reader that goes on from the last id it saw misses no pet that two processes add meanwhile, over every protocol', {
  timeout: TIMEOUT_MS,
}, async ({ annotate }) => {
  const databaseUrl = await createTestDatabase();
  const { created, failures, seen, summary } = await createAndRead(await startNodes(databaseUrl));
  expect(failures).toEqual([]);
  expect(created).toHaveLength(CREATES);
  for (const ids of seen) expect(ids).toEqual(created);
  const rows = await execute<{ id: number }>(databaseUrl, `SELECT id::int FROM ${TABLE} ORDER BY id`);
  expect(rows.map(({ id }) => id)).toEqual(created);
  await annotate(summary);
});

test('after a process was killed in the middle, a reader has missed no pet that either had added', {
  timeout: TIMEOUT_MS,
}, async ({ annotate }) => {
  const databaseUrl = await createTestDatabase();
  const nodes = await startNodes(databaseUrl);
  const atHalf = async () => void (await nodes.killOne());
  const { created, failures, seen, summary } = await createAndRead(nodes, atHalf, READS.slice(1));
  // Those of its callers
  for (const failure of failures) expect(failure).toBe('TypeError: fetch failed');
  const rows = await execute<{ id: number }>(databaseUrl, `SELECT id::int FROM ${TABLE} ORDER BY id`);
  const stored = rows.map(({ id }) => id);
  for (const ids of seen) expect(ids).toEqual(stored);
  // It may have stored some without a word.
  expect(created.filter((id) => !stored.includes(id))).toEqual([]);
  await annotate(`${failures.length} calls failed; ${summary}`);
});

test('beside a transaction of others that is left open and one that is prepared every create succeeds, and a reader misses at most what these insert', {
  timeout: TIMEOUT_MS,
}, async ({ annotate }) => {
  const server = await PostgresServer.start({ max_prepared_transactions: '1' });
  onTestFinished(() => server.close());
  const nodes = await startNodes(server.url);
  const other = new pg.Client(server.url);
  await other.connect();
  onTestFinished(() => other.end());
  const insert = async (text: string): Promise<number> =>
    (await other.query(`${insertSql(`'${text}'`)} RETURNING id::int`)).rows[0].id;
  await other.query('BEGIN');
  const left = [await insert('Prepared')];
  await other.query("PREPARE TRANSACTION 'left'");
  await other.query('BEGIN');
  left.push(await insert('Open'));
  const { created, failures, seen, summary } = await createAndRead(nodes, async () => {
    await other.query('COMMIT');
    await other.query("COMMIT PREPARED 'left'");
  });
  expect(failures).toEqual([]);
  expect(created).toHaveLength(CREATES);
  for (const ids of seen) expect(ids.filter((id) => !left.includes(id))).toEqual(created);
  await annotate(summary);
});
