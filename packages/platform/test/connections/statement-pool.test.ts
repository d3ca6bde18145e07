import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { execute } from '@animal-store/platform/testing';
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { isDatabaseOutage } from '../../src/connections/outage.js';
import { createStatementPool, type StatementPool } from '../../src/connections/statement-pool.js';
import { findServers } from '../support/service-role.js';

/** The message that PostgreSQL sends before it closes a connection: FATAL, 57P01 */
const TERMINATION = errorResponse({ S: 'FATAL', V: 'FATAL', C: '57P01', M: 'terminating connection' });

const one = { name: 'one', text: 'SELECT $1::int AS value' };

/** The server's side of each connection, in the order in which they were opened */
let sockets: Socket[];
let isSilent: boolean;
let statements: StatementPool;
let close: () => Promise<void>;

beforeEach(async () => {
  sockets = [];
  isSilent = false;
  const url = new URL(findServers().url);
  const target = { host: url.hostname, port: Number(url.port) };
  const server = createServer((near) => {
    sockets.push(near);
    near.on('error', () => {});
    if (isSilent) return;
    const far = connect(target);
    far.on('error', () => near.destroy());
    near.pipe(far).pipe(near);
    near.on('close', () => far.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url.port = String((server.address() as AddressInfo).port);
  statements = createStatementPool(
    { connectionString: url.href, connectionTimeoutMillis: 2_000, max: 1 },
    { application_name: 'waits' },
  );
  statements.pool.on('error', () => {});
  // As for all connections of a process
  statements.pool.on('connect', (client) => client.on('error', () => {}));
  close = async () => {
    await statements.pool.end();
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  };
});
afterEach(() => close());

test('a connection that PostgreSQL ends is replaced', async () => {
  expect(await statements.query(one, [1])).toEqual([{ value: 1 }]);
  sockets[0]?.write(TERMINATION);
  await expect.poll(() => statements.pool.totalCount).toBe(0);
  expect(await statements.query(one, [2])).toEqual([{ value: 2 }]);
  expect(await statements.query(one, [3])).toEqual([{ value: 3 }]);
  expect([statements.pool.totalCount, sockets.length]).toEqual([1, 2]);
});

test('a connection that breaks while a statement runs is an outage, and is replaced', async () => {
  await statements.query(one, [1]);
  const failed = statements.query({ name: 'slow', text: 'SELECT pg_sleep(30)' }, []).catch((error) => error);
  await new Promise(setImmediate);
  sockets[0]?.resetAndDestroy();
  expect(isDatabaseOutage(await failed)).toBe(true);
  expect(await statements.query(one, [2])).toEqual([{ value: 2 }]);
});

test('a statement that PostgreSQL rejects leaves its connection open', async () => {
  await expect(statements.query({ name: 'wrong', text: 'SELECT 1/0' }, [])).rejects.toThrow(
    'division by zero',
  );
  expect(await statements.query(one, [1])).toEqual([{ value: 1 }]);
  expect(sockets.length).toBe(1);
});

test('a server that accepts connections and stays silent is an outage, and is tried again', async () => {
  isSilent = true;
  const failed = await statements.query(one, [1]).catch((error: unknown) => error);
  expect([isDatabaseOutage(failed), String(failed)]).toEqual([
    true,
    'Error: Connection terminated due to connection timeout',
  ]);
  isSilent = false;
  expect(await statements.query(one, [1])).toEqual([{ value: 1 }]);
});

test('a statement that was cancelled while it was being prepared is an outage, and is prepared again', async () => {
  const direct = new pg.Client(findServers().url);
  await direct.connect();
  await direct.query('CREATE TABLE locked ()');
  await direct.query('BEGIN; LOCK TABLE locked');
  const count = { name: 'count', text: 'SELECT count(*)::int FROM locked' };
  const failure = statements.query(count, []).catch((error: unknown) => error);
  const cancel = `
    SELECT pg_cancel_backend(pid) FROM pg_stat_activity
    WHERE application_name = 'waits' AND wait_event_type = 'Lock'`;
  // Outside the transaction, within which pg_stat_activity stays as it was when it was first read.
  const cancelled = async () => (await execute(findServers().url, cancel)).length;
  await expect.poll(cancelled, { timeout: 10_000 }).toBe(1);
  expect(await failure).toMatchObject({ code: '57014' });
  expect(isDatabaseOutage(await failure)).toBe(true);
  await direct.query('COMMIT');
  expect(await statements.query(count, [])).toEqual([{ count: 0 }]);
  expect(sockets.length).toBe(1);
  await direct.query('DROP TABLE locked');
  await direct.end();
});

/** PostgreSQL's manual, section 55.7: ErrorResponse */
function errorResponse(fields: Record<string, string>): Buffer {
  const text = Object.entries(fields).map(([type, value]) => `${type}${value}\0`);
  const body = Buffer.from(`${text.join('')}\0`);
  const head = Buffer.alloc(5);
  head.write('E');
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}
