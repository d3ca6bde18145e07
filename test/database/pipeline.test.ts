import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import pg from 'pg';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { isDatabaseOutage } from '../../src/database/outage.js';
import { Pipeline } from '../../src/database/pipeline.js';

/** The message that PostgreSQL sends before it closes a connection: FATAL, 57P01 */
const TERMINATION = errorResponse({ S: 'FATAL', V: 'FATAL', C: '57P01', M: 'terminating connection' });

const one = { name: 'one', text: 'SELECT $1::int AS value' };

/** The server's side of each connection, in the order in which they were opened */
let sockets: Socket[];
let isSilent: boolean;
let pipeline: Pipeline;
let close: () => Promise<void>;

beforeEach(async () => {
  sockets = [];
  isSilent = false;
  const url = new URL(inject('postgresUrl'));
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
  pipeline = new Pipeline({ size: 1, client: { connectionString: url.href, connectionTimeoutMillis: 500 } });
  close = async () => {
    await pipeline.close();
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  };
});
afterEach(() => close());

test('a connection that ends late does not affect the one that replaced it', async () => {
  expect(await pipeline.query(one, [1])).toEqual([{ value: 1 }]);
  sockets[0]?.write(TERMINATION);
  await expect.poll(() => pipeline.connections).toBe(0);
  expect(await pipeline.query(one, [2])).toEqual([{ value: 2 }]);
  const ended = new Promise((resolve) => sockets[0]?.once('close', resolve));
  sockets[0]?.end();
  await ended;
  expect(await pipeline.query(one, [3])).toEqual([{ value: 3 }]);
  expect(await pipeline.query(one, [4])).toEqual([{ value: 4 }]);
  expect([pipeline.connections, sockets.length]).toEqual([1, 2]);
});

test('a server that accepts connections and stays silent is an outage, and is tried again', async () => {
  isSilent = true;
  const failed = await pipeline.query(one, [1]).catch((error: unknown) => error);
  expect([isDatabaseOutage(failed), String(failed)]).toEqual([true, 'Error: timeout expired']);
  isSilent = false;
  expect(await pipeline.query(one, [1])).toEqual([{ value: 1 }]);
});

test('queries sent behind one whose Parse was cancelled fail as well, as an outage', async () => {
  const direct = new pg.Client(inject('postgresUrl'));
  await direct.connect();
  await direct.query('CREATE TABLE locked ()');
  await direct.query('BEGIN; LOCK TABLE locked');
  await pipeline.query({ name: 'name', text: "SET application_name = 'waits'" }, []);
  const count = { name: 'count', text: 'SELECT count(*) FROM locked' };
  const outcomes = Promise.allSettled([1, 2, 3].map(() => pipeline.query(count, [])));
  const cancel = `
    SELECT pg_cancel_backend(pid) FROM pg_stat_activity
    WHERE application_name = 'waits' AND wait_event_type = 'Lock'`;
  await expect.poll(async () => (await direct.query(cancel)).rowCount).toBe(1);
  const failures = (await outcomes).map((outcome) => outcome.status === 'rejected' && outcome.reason);
  await direct.query('DROP TABLE locked; COMMIT');
  await direct.end();
  expect(failures.map(({ code }) => code)).toEqual(['57014', '26000', '26000']);
  expect(failures.map(isDatabaseOutage)).toEqual([true, true, true]);
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
