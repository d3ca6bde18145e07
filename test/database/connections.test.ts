import { afterEach, beforeEach, expect, inject, test, vi } from 'vitest';
import { type Connections, openConnections } from '../../src/database/connections.js';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.js';

const one = { name: 'one', text: 'SELECT 1 AS value' };
const slow = { name: 'slow', text: 'SELECT pg_sleep(30)' };

let proxy: TcpProxy;
let connections: Connections;

beforeEach(async () => {
  const url = new URL(inject('postgresUrl'));
  proxy = await startTcpProxy({ host: url.hostname, port: Number(url.port) });
  url.port = String(proxy.port);
  connections = openConnections(url.href, () => {}, { connectTimeoutMs: 2_000 });
});
afterEach(async () => {
  await proxy.close();
  await connections.close();
});

test('connections that are found stalled at the same moment do not end the process', async () => {
  const onUncaught = vi.fn();
  process.on('uncaughtExceptionMonitor', onUncaught);
  const { pool, reads, poolStatistics } = connections;
  await Promise.all([reads.query(one, []), reads.query(one, []), pool.query('SELECT 1')]);
  expect([reads.pool.totalCount, poolStatistics.idleCount]).toEqual([2, 3]);
  const first = reads.query(slow, []);
  await reads.query(one, []);
  const second = reads.query(slow, []);
  proxy.stall();
  const outcomes = await Promise.allSettled([first, second]);
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  const counts = () => [poolStatistics.waitingCount, poolStatistics.totalCount];
  await expect.poll(counts, { timeout: 10_000 }).toEqual([0, 0]);
  process.off('uncaughtExceptionMonitor', onUncaught);
  expect(onUncaught).not.toHaveBeenCalled();
});
