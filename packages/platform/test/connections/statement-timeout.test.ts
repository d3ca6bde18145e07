import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Connections, openConnections } from '../../src/connections/connections.js';
import { withStatementTimeout } from '../../src/connections/statement-timeout.js';
import { findServers } from '../support/service-role.js';

let connections: Connections;
beforeEach(() => {
  connections = openConnections(findServers().url, () => {});
});
afterEach(() => connections.close());

const readTimeout = async () => (await connections.pool.query('SHOW statement_timeout')).rows;

test('a statement may take longer than those of requests, and leaves the connection as it was', async () => {
  const ofRequests = await readTimeout();
  const pool = withStatementTimeout(connections.pool, () => 20_000);
  const { rows } = await pool.query('SELECT $1::int AS value FROM pg_sleep(2)', [7]);
  expect(rows).toEqual([{ value: 7 }]);
  expect(connections.pool.totalCount).toBe(1);
  expect(await readTimeout()).toEqual(ofRequests);
});

test('one that takes too long is ended by PostgreSQL, and nothing of it stays but its connection', async () => {
  const ofRequests = await readTimeout();
  let opened = 0;
  connections.pool.on('connect', () => (opened += 1));
  const pool = withStatementTimeout(connections.pool, () => 100);
  const insert = 'INSERT INTO pg_temp.late SELECT 1 FROM pg_sleep(60)';
  await connections.pool.query('CREATE TEMP TABLE late (n int)');
  await expect(pool.query(insert)).rejects.toMatchObject({ code: '57014' });
  await expect.poll(() => connections.pool.idleCount).toBe(1);
  expect((await pool.query('SELECT count(*)::int AS count FROM pg_temp.late')).rows).toEqual([{ count: 0 }]);
  expect([opened, await readTimeout()]).toEqual([0, ofRequests]);
});
