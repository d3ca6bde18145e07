import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { execute } from '@animal-store/platform/testing';
import type pg from 'pg';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Connections, openConnections } from '../../src/connections/connections.js';
import { findServers } from '../support/service-role.js';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.js';

const APPLICATION_NAME = `connections-${process.pid}`;
const one = { name: 'one', text: 'SELECT 1 AS value' };
const slow = { name: 'slow', text: 'SELECT pg_sleep(30)' };

const documents = readdirSync('docs', { recursive: true, encoding: 'utf8' })
  .filter((path) => /\.(?:md|sql|yaml)$/.test(path))
  .map((path) => readFileSync(join('docs', path), 'utf8'));

let proxy: TcpProxy;
let connections: Connections;

beforeEach(async () => {
  const url = new URL(findServers().url);
  proxy = await startTcpProxy({ host: url.hostname, port: Number(url.port) });
  url.port = String(proxy.port);
  connections = openConnections(url.href, () => {}, {
    connectTimeoutMs: 3_000,
    applicationName: APPLICATION_NAME,
  });
});
afterEach(async () => {
  await proxy.close();
  await connections.close();
});

test('connections that are found stalled at the same moment do not end the process', async () => {
  const onUncaught = vi.fn();
  process.on('uncaughtExceptionMonitor', onUncaught);
  const { pool, reads, countConnections } = connections;
  await Promise.all([reads.query(one, []), reads.query(one, []), pool.query('SELECT 1')]);
  expect([reads.pool.totalCount, countConnections('idleCount')]).toEqual([2, 3]);
  const first = reads.query(slow, []);
  await reads.query(one, []);
  const second = reads.query(slow, []);
  proxy.stall();
  const outcomes = await Promise.allSettled([first, second]);
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  await expect.poll(() => [countConnections('waitingCount'), reads.pool.totalCount]).toEqual([0, 0]);
  await proxy.restore();
  await expect.poll(isServed, { interval: 50 }).toBe(true);
  process.off('uncaughtExceptionMonitor', onUncaught);
  expect(onUncaught).not.toHaveBeenCalled();
});

test('readiness tries an idle connection of each pool that only requests use otherwise, and waits for none that is in use', async () => {
  const { pool, writes, checkStatements, connect } = connections;
  await connect();
  const tried: string[] = [];
  for (const [name, each] of Object.entries({ pool, writes: writes.pool }))
    each.on('acquire', () => void tried.push(name));
  await checkStatements();
  expect(tried).toEqual(['pool', 'writes']);
  const all = [pool, writes.pool].flatMap((each) => Array.from({ length: each.size }, () => each.connect()));
  const taken = await Promise.all(all);
  tried.length = 0;
  await checkStatements();
  expect(tried).toEqual([]);
  for (const each of taken) each.release();
});

test.each(['pool', 'reads', 'writes', 'keys'] as const)(
  'a connection that breaks as it passes from one request to the next fails only what is sent on it (%s)',
  async (name) => {
    const pool = name === 'pool' ? connections.pool : connections[name].pool;
    const [first, ...others] = await Promise.all(
      Array.from({ length: pool.options.max }, () => pool.connect()),
    );
    const next = pool.connect();
    first?.release();
    // PostgreSQL may send the end of a statement and that of the connection together, as when it is restarted.
    first?.emit('error', new Error('terminating connection due to administrator command'));
    expect(await next).toBe(first);
    for (const client of [first, ...others]) client?.release(true);
    expect((await pool.query('SELECT 1 AS value')).rows).toEqual([{ value: 1 }]);
  },
);

/** The server processes of the connections, by a connection of its own. */
const listBackends = () =>
  execute<{ pid: number }>(
    findServers().url,
    `SELECT pid FROM pg_stat_activity WHERE application_name = '${APPLICATION_NAME}'`,
  );

/** Like a commit that waits for a standby: it ends neither by a timeout of PostgreSQL nor because its client is gone. */
async function runUnanswered(pool: pg.Pool, seconds: number): Promise<void> {
  const client = await pool.connect();
  await client.query('SET statement_timeout = 0');
  await expect(client.query('SELECT pg_sleep($1)', [seconds])).rejects.toSatisfy((error: Error) => {
    client.release(error);
    return error.message === 'Query read timeout';
  });
}

const isServed = () =>
  connections.reads.query(one, []).then(
    () => true,
    () => false,
  );

test('what PostgreSQL goes on with unanswered keeps its place, so that a pool never has more than its size', async () => {
  const { reads, writes } = connections;
  await writes.query(one, []);
  const counts: number[] = [];
  let isOver = false;
  const counting = (async () => {
    while (!isOver) counts.push((await listBackends()).length);
  })();
  const size = reads.pool.options.max;
  await Promise.all(Array.from({ length: size }, () => runUnanswered(reads.pool, 5)));
  await expect(reads.query(one, [])).rejects.toThrow('timeout exceeded when trying to connect');
  // Other pools are not touched.
  expect([writes.pool.totalCount, await writes.query(one, [])]).toEqual([1, [{ value: 1 }]]);
  await expect.poll(isServed, { interval: 50 }).toBe(true);
  isOver = true;
  await counting;
  expect(Math.max(...counts)).toBe(size + 1);
});

test('a pool goes on with the connections that are left while one of them gets no response', async () => {
  const { reads } = connections;
  const size = reads.pool.options.max;
  await runUnanswered(reads.pool, 3);
  for (let n = 0; n < 5; n += 1) expect(await isServed()).toBe(true);
  expect(reads.pool.totalCount).toBe(1);
  await expect.poll(() => reads.pool.options.max).toBe(size);
});

test('a process opens no more connections than the documents say', async () => {
  await connections.close();
  // A busy machine takes its time for so many.
  connections = openConnections(findServers().url, () => {}, { connectTimeoutMs: 60_000 });
  const { pool, reads, writes, keys, countConnections } = connections;
  const brief = { name: 'brief', text: 'SELECT pg_sleep(0.1)' };
  const queries = Array.from({ length: 20 }, () => [
    pool.query(brief.text),
    ...[reads, writes, keys].map((statements) => statements.query(brief, [])),
  ]);
  await Promise.all(queries.flat());
  const documented = documents.flatMap((text) => [...text.matchAll(/up to (\d+) connections/g)]);
  expect(documented.length).toBeGreaterThan(1);
  expect(new Set(documented.map(([, count]) => Number(count)))).toEqual(
    new Set([countConnections('totalCount')]),
  );
});

test('nothing is set on the connections of a role that has the documented settings', async () => {
  const role = `settled_${process.pid}`;
  const settings = documents.flatMap((text) => text.match(/ALTER ROLE animal_store SET .*;/g) ?? []);
  await execute(findServers().url, `CREATE ROLE ${role} LOGIN PASSWORD 'secret'`);
  const readSources = async (user?: string) => {
    const url = new URL(findServers().url);
    if (user !== undefined) Object.assign(url, { username: user, password: 'secret' });
    const { pool, reads, close } = openConnections(url.href, () => {});
    const sql = "SELECT name FROM pg_settings WHERE source = 'session' AND name <> 'application_name'";
    const { rows } = await pool.query(sql);
    return [...rows, ...(await reads.query({ name: 'sources', text: sql }, []).finally(close))];
  };
  try {
    for (const setting of settings) await execute(findServers().url, setting.replace('animal_store', role));
    expect((await readSources()).length).toBeGreaterThan(0);
    expect(await readSources(role)).toEqual([]);
  } finally {
    await execute(findServers().url, `DROP ROLE ${role}`);
  }
});
