import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, inject, test, vi } from 'vitest';
import { type Connections, openConnections } from '../../../src/platform/database/connections.js';
import { execute } from '../../support/execute.js';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.js';

const one = { name: 'one', text: 'SELECT 1 AS value' };
const slow = { name: 'slow', text: 'SELECT pg_sleep(30)' };

const documents = readdirSync('docs', { recursive: true, encoding: 'utf8' })
  .filter((path) => /\.(?:md|yaml)$/.test(path))
  .map((path) => readFileSync(join('docs', path), 'utf8'));

let proxy: TcpProxy;
let connections: Connections;

beforeEach(async () => {
  const url = new URL(inject('postgresUrl'));
  proxy = await startTcpProxy({ host: url.hostname, port: Number(url.port) });
  url.port = String(proxy.port);
  connections = openConnections(url.href, () => {}, { connectTimeoutMs: 3_000 });
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
  const counts = () => [countConnections('waitingCount'), countConnections('totalCount')];
  await expect.poll(counts, { timeout: 10_000 }).toEqual([0, 0]);
  process.off('uncaughtExceptionMonitor', onUncaught);
  expect(onUncaught).not.toHaveBeenCalled();
});

test('a process opens no more connections than the documents say', async () => {
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
  const settings = documents.flatMap((text) => text.match(/ALTER ROLE store SET .*;/g) ?? []);
  await execute(inject('postgresUrl'), `CREATE ROLE ${role} LOGIN PASSWORD 'secret'`);
  const readSources = async (user?: string) => {
    const url = new URL(inject('postgresUrl'));
    if (user !== undefined) Object.assign(url, { username: user, password: 'secret' });
    const { pool, reads, close } = openConnections(url.href, () => {});
    const sql = "SELECT name FROM pg_settings WHERE source = 'session' AND name <> 'application_name'";
    const { rows } = await pool.query(sql);
    return [...rows, ...(await reads.query({ name: 'sources', text: sql }, []).finally(close))];
  };
  try {
    for (const setting of settings) await execute(inject('postgresUrl'), setting.replace('store', role));
    expect((await readSources()).length).toBeGreaterThan(0);
    expect(await readSources(role)).toEqual([]);
  } finally {
    await execute(inject('postgresUrl'), `DROP ROLE ${role}`);
  }
});
