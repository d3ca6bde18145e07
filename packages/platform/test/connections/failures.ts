import { type Caller, createCaller, post } from '@animal-store/platform/testing';
import { expect } from 'vitest';
import { create, list, newItem, REUSE_EXAMPLES, TABLE } from '#operations-under-test';
import {
  callEverything,
  type EveryCall,
  listEveryCall,
  nameOf,
  type Outcome,
  PROBES,
} from '../support/every-call.js';
import { expectErrorBody, expectMcpErrorBody } from '../support/expect-error-body.js';
import FAILURES from './failures.json' with { type: 'json' };

/**
 * What may happen to PostgreSQL. What the service does meanwhile is in failures.json, from which a table of
 * docs/operations.md is written, too.
 */
export type FailureName = keyof typeof FAILURES;

/** What the service answers with while a failure lasts. */
interface Expected {
  readonly reads: number;
  readonly writes: number;
  /** Where creates meet no failure, because it is one of rows that are there */
  readonly creates?: number;
  readonly ready: number;
}

/** A service whose database is about to fail. */
export interface Scene {
  readonly url: string;
  readonly key: string;
  /** A further key with all scopes, which a call may end */
  readonly endable: { readonly key: string; readonly hint: string };
  /** Runs SQL as a superuser, whatever the service can reach. */
  query<Row extends object>(sql: string): Promise<Row[]>;
}

/** A failure that has begun, and the service that meets it, if it is not that of the scene. */
export interface Failing extends Partial<Pick<Scene, 'url' | 'query'>> {
  end(): Promise<unknown>;
}

/** As docs/capacity.md promises: the sizes of the four pools, and one more for each */
const MAX_CONNECTIONS = 12 + 4;

/**
 * Begins a failure and calls every operation over every protocol. They are answered as the row of the failure says, and
 * served again after its end, when a reader who goes on from its last id misses nothing.
 *
 * @param seconds for which everything is called again and again. 0: each call once, all at the same time
 * @returns what was counted meanwhile
 */
export async function expectFailure(
  name: FailureName,
  scene: Scene,
  begin: () => Promise<Failing>,
  seconds = 0,
): Promise<string> {
  const { key, endable } = scene;
  const ownCall = createCaller(scene);
  const calls = await listEveryCall(ownCall, endable);
  await scene.query(REUSE_EXAMPLES);
  const reader = createReader();
  await reader.readOn(ownCall);

  const { end, ...failing } = await begin();
  const { url, query } = { ...scene, ...failing };
  const call = expecting503Whole(createCaller({ url, key }));
  const countConnections = async () => {
    const sql = "SELECT count(*)::int FROM pg_stat_activity WHERE application_name = 'boatyard'";
    const [row] = await query<{ count: number }>(sql);
    return row?.count ?? 0;
  };
  const seen =
    seconds === 0
      ? await callAtOnce({ url, call }, calls)
      : await callEverything({ url, call }, calls, seconds, countConnections);
  expectAnswers(FAILURES[name], calls, seen.statuses);
  expect(seen.connections).toBeLessThanOrEqual(MAX_CONNECTIONS);
  await end();

  const endedAt = performance.now();
  const createAgain = async () =>
    (await call(create.path, post(newItem('Again'), { 'idempotency-key': name }))).status;
  await expect.poll(createAgain, { interval: 20 }).toBe(201);
  const servedMs = Math.round(performance.now() - endedAt);
  const readiness = async () => (await fetch(`${url}/health/ready`)).status;
  await expect.poll(readiness).toBe(200);
  await expect.poll(() => reader.readOn(call)).toBe(0);
  const rows = await query<{ id: number }>(`SELECT id::int FROM ${TABLE} ORDER BY id`);
  expect(reader.seen).toEqual(rows.map(({ id }) => id));
  const { counts, connections, p99Ms } = seen;
  return `${JSON.stringify(counts)}; at most ${connections} connections; p99 of reads ${p99Ms.toFixed(0)} ms; created again after ${servedMs} ms`;
}

function expectAnswers(
  { reads, writes, creates, ready }: Expected,
  calls: readonly EveryCall[],
  statuses: Outcome['statuses'],
): void {
  const answersOf = (names: readonly string[]) => names.map((name) => [name, ...(statuses.get(name) ?? [])]);
  const readNames = calls.filter(({ isRead }) => isRead).map(nameOf);
  expect(answersOf(readNames)).toEqual(readNames.map((name) => [name, reads]));
  const [readiness, ...others] = PROBES;
  expect(answersOf(PROBES)).toEqual([[readiness, ready], ...others.map((name) => [name, 200])]);
  const writeAnswers = answersOf(calls.filter(({ isRead }) => !isRead).map(nameOf));
  const met =
    creates === undefined ? writeAnswers : writeAnswers.filter((answers) => answers.includes(writes));
  expect(met).not.toEqual([]);
  expect(met).toEqual(met.map(([name]) => [name, writes]));
  if (creates !== undefined) expect(met.filter(([name]) => String(name).startsWith(create.name))).toEqual([]);
}

/** All calls and probes at the same time, because each may wait for as long as a request may. */
async function callAtOnce(
  { url, call }: { readonly url: string; readonly call: Caller },
  calls: readonly EveryCall[],
): Promise<Outcome> {
  const sent = [
    ...calls.map(async (each) => [nameOf(each), await each.send(call)] as const),
    ...PROBES.map(async (path) => [path, (await fetch(url + path)).status] as const),
  ];
  const statuses = new Map((await Promise.all(sent)).map(([name, status]) => [name, new Set([status])]));
  return { statuses, counts: { reads: 0, writes: 0, probes: 0 }, connections: 0, p99Ms: 0 };
}

/** Every 503 says when to try again, and is an error of its protocol. */
function expecting503Whole(call: Caller): Caller {
  return async (path, init) => {
    const response = await call(path, init);
    const { status, headers, body } = response;
    if (status !== 503) return response;
    expect([path, headers.get('retry-after')]).toEqual([path, '1']);
    if (path.startsWith('/mcp')) expectMcpErrorBody(body, 'service_unavailable');
    else expectErrorBody(path.startsWith('/trpc') ? body.error.data.error : body, 'service_unavailable');
    return response;
  };
}

/** Reads on from the last id that it has seen. */
function createReader() {
  const seen: number[] = [];
  return {
    seen,
    /** Returns how many rows were new. */
    async readOn(call: Caller): Promise<number> {
      const { status, body } = await call(`${list.path}?limit=100&cursor=${seen.at(-1) ?? 0}`);
      expect(status).toBe(200);
      for (const { id } of body) seen.push(id);
      return body.length;
    },
  };
}
