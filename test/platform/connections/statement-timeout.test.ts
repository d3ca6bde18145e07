import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { type Connections, openConnections } from '../../../src/platform/connections/connections.js';
import { withStatementTimeout } from '../../../src/platform/connections/statement-timeout.js';

let connections: Connections;
beforeEach(() => {
  connections = openConnections(inject('postgresUrl'), () => {});
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

test('one that takes too long is ended by PostgreSQL, and nothing of it stays', async () => {
  const pool = withStatementTimeout(connections.pool, () => 100);
  await expect(pool.query('SELECT pg_sleep(60)')).rejects.toMatchObject({ code: '57014' });
  expect((await pool.query('SELECT 1 AS value')).rows).toEqual([{ value: 1 }]);
});
