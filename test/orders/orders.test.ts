import { createCaller, execute, post, rpcPath, toolCall } from '@animal-store/platform/testing';
import pg from 'pg';
import { beforeAll, expect, test } from 'vitest';
import { definition } from '#operations-under-test';
import { openDatabase } from '../../packages/platform/src/connections/client.js';
import { addSampleData } from '../../packages/platform/src/database/open-database.js';
import { createTestDatabase, startService, useService } from '../support/service.js';
import { expectSound } from './sound.js';

const { call, service } = useService();

beforeAll(async () => {
  await addSampleData(definition, service.database);
  // The sample orders ascend by time and animal, too, and lie in the table in that order.
  await service.database.pool.query(
    "INSERT INTO orders (pet_id, created_at) SELECT min(id), '2001-01-01' FROM pets",
  );
  await service.database.pool.query(
    'UPDATE orders SET status = status WHERE id = (SELECT min(id) FROM orders)',
  );
});

test('of the sample data, no animal has a status that contradicts its orders', async () => {
  const databaseUrl = await createTestDatabase();
  const seeded = openDatabase(databaseUrl, () => {}, definition);
  await addSampleData(definition, seeded);
  await seeded.close();
  expect(await execute(databaseUrl, 'SELECT FROM orders')).not.toEqual([]);
  await expectSound(databaseUrl);
});

test('listOrders is a bare array by ascending id, the same over both protocols', async () => {
  const { status, body, headers } = await call('/v1/store/orders');
  expect([status, headers.get('link')]).toEqual([200, null]);
  expect(body.length).toBeGreaterThanOrEqual(8);
  for (const order of body) {
    expect(order).toEqual({
      id: expect.any(Number),
      petId: expect.any(Number),
      status: expect.stringMatching(/^(placed|approved|delivered|cancelled)$/),
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    });
  }
  const ids = body.map(({ id }: { id: number }) => id);
  expect(ids).toEqual(ids.toSorted((a: number, b: number) => a - b));
  expect((await call('/trpc/listOrders')).body.result.data).toEqual(body);
});

test('createOrder names the address of its order, where getOrder finds it over every protocol', async () => {
  const { body: pet } = await call('/v1/pets', post({ name: 'Ordered', categoryId: 1 }));
  const { status, body, headers } = await call('/v1/store/orders', post({ petId: pet.id }));
  expect([status, headers.get('location')]).toEqual([201, `/store/v1/store/orders/${body.id}`]);
  expect((await call(`/v1/store/orders/${body.id}`)).body).toEqual(body);
  expect((await call(rpcPath('getOrder', { orderId: body.id }))).body.result.data).toEqual(body);
  const tool = await call('/mcp', toolCall('getOrder', { orderId: body.id }));
  expect(tool.body.result.structuredContent).toEqual(body);
});

test('the orders before a moment are listed over every protocol, without those at it, whatever else is asked for', async () => {
  const { pool } = service.database;
  const { body: pet } = await call('/v1/pets', post({ name: 'Late', categoryId: 1 }));
  const add = (hour: number, status: string) =>
    pool.query('INSERT INTO orders (pet_id, created_at, status) VALUES ($1, $2, $3)', [
      pet.id,
      `2026-07-01T${hour}:00:00Z`,
      status,
    ]);
  for (const hour of [13, 11, 12]) await add(hour, 'cancelled');
  await add(10, 'placed');
  const timesOf = (orders: readonly { createdAt: string }[]) =>
    orders.map(({ createdAt }) => createdAt.slice(11, 13));
  const ask = { petId: pet.id, createdBefore: '2026-07-01T12:00:00Z' };
  const query = `petId=${pet.id}&createdBefore=2026-07-01T12:00:00Z`;
  const { body } = await call(`/v1/store/orders?${query}`);
  expect(timesOf(body)).toEqual(['11', '10']);
  expect((await call(rpcPath('listOrders', ask))).body.result.data).toEqual(body);
  const tool = await call('/mcp', toolCall('listOrders', ask));
  expect(tool.body.result.structuredContent).toEqual({ items: body, nextCursor: null });
  expect(timesOf((await call(`/v1/store/orders?${query}&order=newest`)).body)).toEqual(['10', '11']);
  expect(timesOf((await call(`/v1/store/orders?${query}&status=placed`)).body)).toEqual(['10']);
  const page = await call(`/v1/store/orders?${query}&limit=1`);
  const next = /<([^>]+)>/.exec(page.headers.get('link') ?? '')?.[1] ?? '';
  expect(new URL(next).searchParams.get('createdBefore')).toBe(ask.createdBefore);
  expect(timesOf((await call(`/v1/store/orders${new URL(next).search}`)).body)).toEqual(['10']);
});

test('a moment that is none, or not in UTC, is a 400 over every protocol', async () => {
  for (const createdBefore of [
    '',
    'yesterday',
    '2026-07-01',
    '2026-07-01T12:00:00',
    '2026-07-01T14:00:00+02:00',
    '2026-02-30T00:00:00Z',
    '0000-01-01T00:00:00Z',
    'infinity',
  ]) {
    const query = new URLSearchParams({ createdBefore });
    const answers = await Promise.all([
      call(`/v1/store/orders?${query}`),
      call(rpcPath('listOrders', { createdBefore })),
    ]);
    expect([createdBefore, ...answers.map(({ status }) => status)]).toEqual([createdBefore, 400, 400]);
    const tool = await call('/mcp', toolCall('listOrders', { createdBefore }));
    expect(tool.body.result.structuredContent.code).toBe('invalid_request');
  }
});

test('times are right whatever the time zone of the database', async () => {
  const databaseUrl = await createTestDatabase();
  const admin = new pg.Client(databaseUrl);
  await admin.connect();
  await admin.query(
    `ALTER DATABASE ${new URL(databaseUrl).pathname.slice(1)} SET timezone = 'America/Los_Angeles'`,
  );
  await admin.query(`INSERT INTO pets (name, category_id) VALUES ('Rex', 1)`);
  await admin.query(`INSERT INTO orders (pet_id, created_at) VALUES (1, '2026-07-01T12:00:00Z')`);
  const elsewhere = await startService({ databaseUrl });
  const { body } = await createCaller(elsewhere)('/v1/store/orders');
  expect(body[0].createdAt).toBe('2026-07-01T12:00:00.000Z');
  const expiresAt = new Date('2030-01-01T00:00:00Z');
  const limits = { plan: 'free', perMinute: null, perDay: null } as const;
  const { apiKey } = await elsewhere.keys.create({ name: 'zoned', expiresAt, ...limits });
  expect((await elsewhere.keys.find(apiKey.id))?.expiresAt).toEqual(expiresAt);
  const { rows } = await admin.query('SELECT expires_at FROM api_keys WHERE id = $1', [apiKey.id]);
  expect(rows[0].expires_at).toEqual(expiresAt);
  await admin.end();
  await elsewhere.close();
});

test('no operation changes or deletes all orders', async () => {
  for (const method of ['PUT', 'PATCH', 'DELETE']) {
    const { status, headers } = await call('/v1/store/orders', { ...post({}), method });
    expect([status, headers.get('allow')]).toEqual([405, 'GET, POST, HEAD']);
  }
  expect((await call('/trpc/listOrders', post({}))).status).toBe(405);
});

test('the database rejects orders that the service could not serve', async () => {
  const { pool } = service.database;
  const insert = (values: string) =>
    pool.query(`INSERT INTO orders (pet_id, status, created_at) VALUES (${values})`);
  const { rows } = await pool.query('SELECT min(id) AS id FROM pets');
  await expect(insert(`0, 'placed', now()`)).rejects.toThrow(/foreign key/);
  await expect(insert(`${rows[0].id}, 'delivered', 'infinity'`)).rejects.toThrow(/created_at/);
  await expect(pool.query('DELETE FROM pets')).rejects.toThrow(/foreign key/);
});
