import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createEmbeddedPostgres, type EmbeddedPostgres } from '@animal-store/embedded-postgres';
import {
  type Caller,
  createCaller,
  createTemporaryFolder,
  type Program,
  post,
  type TestResponse,
  untilListening,
} from '@animal-store/platform/testing';
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { create, definition, newItem, TABLE, TEXT } from '#operations-under-test';
import { applyMigrations } from '../../src/migrations/migration-runner.js';
import { run, runKeys, UNREACHED_LIMITS } from '../support/process.js';
import { createServiceRole } from '../support/service-role.js';

/** A PostgreSQL for this test only. The service knows its URL; the test restarts it. */
let postgres: EmbeddedPostgres;
let dataDir: string;
let service: Program;
let call: Caller;
let direct: pg.Client;
/** Undoes the failure that a test has caused */
let repair = () => {};
/** The paths that got a 503 */
let unavailable: Set<string>;

beforeEach(async () => {
  unavailable = new Set();
  dataDir = await createTemporaryFolder();
  postgres = await createEmbeddedPostgres({ dataDir, database: 'boatyard' });
  await applyMigrations(postgres.url, definition.root);
  await createServiceRole(postgres.url);
  const environment = { DATABASE_URL: postgres.url, APP_ENV: 'staging', PORT: '0' };
  const { key } = await runKeys(environment, 'create', '--name', 'x', ...UNREACHED_LIMITS);
  service = run('main', [], environment);
  call = createCaller({ url: await untilListening(service), key });
  direct = await connect();
});
afterEach(async () => {
  repair();
  await direct.end().catch(() => {});
  service.child.kill('SIGTERM');
  expect(await service.ended, service.output()).toBe(0);
  await postgres.release();
  await rm(dataDir, { recursive: true, force: true });
});

async function connect(): Promise<pg.Client> {
  const client = new pg.Client(postgres.url);
  client.on('error', () => {});
  await client.connect();
  return client;
}

async function readPostmaster(): Promise<number> {
  const lock = await readFile(join(dataDir, 'postgres', 'data', 'postmaster.pid'), 'utf8');
  return Number(lock.split('\n')[0]);
}

/** Stops the server and all of its processes; returns a function that resumes them. */
async function stall(): Promise<() => void> {
  const postmaster = await readPostmaster();
  // The postmaster first, so that it starts no further process.
  process.kill(postmaster, 'SIGSTOP');
  const { rows } = await direct.query<{ pid: number }>('SELECT pid FROM pg_stat_activity');
  const pids = [postmaster, ...rows.map(({ pid }) => pid)];
  for (const pid of pids) process.kill(pid, 'SIGSTOP');
  return () => {
    for (const pid of pids.splice(0)) process.kill(pid, 'SIGCONT');
  };
}

/** Expects the operation's response, or a 503 with Retry-After. */
async function callOnce(path: string, init: RequestInit = {}): Promise<TestResponse> {
  const response = await call(path, init);
  if (response.status === 503) unavailable.add(path);
  if (response.status === 503 && path !== READY) expect(response.headers.get('retry-after')).toBe('1');
  return response;
}

const READY = '/health/ready';
const paths = [create.path, create.trpc];
const idOf = (path: string, { body }: TestResponse): number =>
  path === create.path ? body.id : body.result.data.id;

/** Creates items one after the other until told to stop, each repeated with its Idempotency-Key until acknowledged. */
async function createUntil(isOver: () => boolean, stream: number, created: Map<string, number>) {
  for (let n = 0; !isOver(); n += 1) {
    const name = `item-${stream}-${n}`;
    const path = paths[stream % 2] ?? '';
    const init = post(newItem(name), { 'idempotency-key': name });
    const response = await retry(path, init);
    created.set(name, idOf(path, response));
  }
}

async function retry(path: string, init: RequestInit): Promise<TestResponse> {
  for (;;) {
    const response = await callOnce(path, init);
    if (response.status < 300) return response;
    expect([409, 503]).toContain(response.status);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function signalPostmaster(signal: NodeJS.Signals): Promise<() => void> {
  process.kill(await readPostmaster(), signal);
  return () => {};
}

test.each([
  { event: 'stalled, all of its processes,', breakDown: stall, expectedUnavailable: [...paths, READY] },
  { event: 'restarted', breakDown: () => signalPostmaster('SIGINT'), expectedUnavailable: [] },
  {
    event: 'killed and started again',
    breakDown: () => signalPostmaster('SIGKILL'),
    expectedUnavailable: [],
  },
])(
  'PostgreSQL $event during creates: 503 over both protocols, recovery by itself, and each item once',
  {
    timeout: 60_000,
  },
  async ({ breakDown, expectedUnavailable }) => {
    const created = new Map<string, number>();
    let isOver = false;
    const streams = Promise.all([0, 1, 2, 3].map((stream) => createUntil(() => isOver, stream, created)));
    const grow = (by: number) => {
      const enough = created.size + by;
      return expect.poll(() => created.size, { timeout: 20_000 }).toBeGreaterThan(enough);
    };
    const follow = async () => {
      await grow(40);
      repair = await breakDown();
      await expect.poll(() => unavailable.size).toBeGreaterThan(0);
      if (expectedUnavailable.includes(READY)) expect((await callOnce(READY)).status).toBe(503);
      await expect.poll(() => [...unavailable]).toEqual(expect.arrayContaining(expectedUnavailable));
      repair();
      await grow(40);
      await expect.poll(async () => (await callOnce(READY)).status).toBe(200);
    };
    await Promise.race([streams, follow()]);
    isOver = true;
    await streams;
    const client = await connect();
    const { rows } = await client.query<{ name: string; id: string }>(
      `SELECT ${TEXT} AS name, id FROM ${TABLE}`,
    );
    await client.end();
    const stored = rows.map(({ name, id }) => `${name} ${id}`).sort();
    expect(stored).toEqual([...created].map(([name, id]) => `${name} ${id}`).sort());
  },
);
