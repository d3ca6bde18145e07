import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { create, list, newItem, otherList, read, TABLE } from '../../support/operations-under-test.js';
import { PostgresServer } from '../../support/postgres-server.js';
import { runKeys, UNREACHED_LIMITS } from '../../support/process.js';
import { createCaller, post } from '../../support/test-service.js';
import { closeNodes, startNode } from '../../support/two-nodes.js';

afterAll(closeNodes);

/** CANNOT_COMMIT_SECONDS=60 makes it a run of a minute. */
const SECONDS = Number(process.env.CANNOT_COMMIT_SECONDS || 12);
const CREATES_PER_SECOND = 20;
/** As docs/capacity.md promises: the sizes of the four pools, and one more for each */
const MAX_CONNECTIONS = 12 + 4;

test('while PostgreSQL cannot commit, creates are 503 and reads go on, within the sizes of the pools; afterwards a reader has missed nothing', {
  timeout: 60_000 + SECONDS * 2_000,
}, async ({ annotate }) => {
  const server = await PostgresServer.start();
  onTestFinished(() => server.close());
  const environment = { DATABASE_URL: server.url };
  const { key } = await runKeys(environment, 'create', '--name', 'x', ...UNREACHED_LIMITS);
  const call = createCaller({ url: await startNode(environment), key });
  const createOne = async (n: number) => {
    const headers = n % 2 === 0 ? {} : { 'idempotency-key': `create-${n}` };
    return (await call(n % 4 < 2 ? create.path : create.trpc, post(newItem(`Item ${n}`), headers))).status;
  };
  expect(await createOne(0)).toBe(201);
  const countBackends = async (condition: string) => {
    const [row] = await server.query<{ count: number }>(
      `SELECT count(*)::int FROM pg_stat_activity WHERE application_name = 'animal-store' AND ${condition}`,
    );
    return row?.count ?? 0;
  };
  // Nobody by this name ever acknowledges a commit.
  await server.query("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
  await server.reload();
  const creates: Promise<number>[] = [];
  const reads: number[] = [];
  const durationsMs: number[] = [];
  const [backends, waiting]: [number[], number[]] = [[], []];
  const seen: number[] = [];
  const readOn = async () => {
    const { status, body } = await call(`${list.path}?limit=100&cursor=${seen.at(-1) ?? 0}`);
    reads.push(status);
    for (const { id } of body) seen.push(id);
  };
  const endsAt = performance.now() + SECONDS * 1_000;
  for (let n = 1; performance.now() < endsAt; n += 1) {
    creates.push(createOne(n));
    const startedAt = performance.now();
    reads.push((await call(read.pathOf(1))).status, (await call(otherList.path)).status);
    durationsMs.push((performance.now() - startedAt) / 2);
    await readOn();
    backends.push(await countBackends('true'));
    waiting.push(await countBackends("wait_event = 'SyncRep'"));
    await delay(1_000 / CREATES_PER_SECOND);
  }
  expect(new Set(await Promise.all(creates))).toEqual(new Set([503]));
  expect(new Set(reads)).toEqual(new Set([200]));
  expect(Math.max(...backends)).toBeLessThanOrEqual(MAX_CONNECTIONS);
  expect(Math.max(...waiting)).toBeGreaterThan(0);
  await server.query('ALTER SYSTEM RESET synchronous_standby_names');
  await server.reload();
  const resetAt = performance.now();
  await expect.poll(() => createOne(0), { interval: 20 }).toBe(201);
  const recoveredMs = performance.now() - resetAt;
  await expect.poll(() => countBackends('true')).toBeLessThanOrEqual(12);
  for (let before = -1; before < seen.length; ) {
    before = seen.length;
    await readOn();
  }
  const rows = await server.query<{ id: number }>(`SELECT id::int FROM ${TABLE} ORDER BY id`);
  expect(seen).toEqual(rows.map(({ id }) => id));
  durationsMs.sort((a, b) => a - b);
  const p99 = durationsMs[Math.ceil(0.99 * durationsMs.length) - 1] ?? 0;
  await annotate(
    `${creates.length} creates; at most ${Math.max(...backends)} connections, ${Math.max(...waiting)} of which waited for the ` +
      `standby; p99 of reads ${p99.toFixed(0)} ms; created again ${Math.round(recoveredMs)} ms after the reset`,
  );
});
