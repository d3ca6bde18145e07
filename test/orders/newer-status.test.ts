import { createCaller, execute, PROTOCOLS } from '@animal-store/platform/testing';
import { expect, onTestFinished, test } from 'vitest';
import { NEXT_STATUSES } from '../../src/order-progress.js';
import { createTestDatabase, startService } from '../support/service.js';
import { type Asked, ask } from './ask.js';

/** Which no version of this code knows */
const NEWER = 'newer';

test('a status that a later version has added is read, takes an animal off sale, and closes an order', async () => {
  const databaseUrl = await createTestDatabase();
  for (const type of ['pet_status', 'order_status'])
    await execute(databaseUrl, `ALTER TYPE ${type} ADD VALUE '${NEWER}'`);
  const service = await startService({ databaseUrl });
  onTestFinished(() => service.close());
  const call = createCaller(service);
  await execute(databaseUrl, `INSERT INTO pets (name, category_id, status) VALUES ('Rex', 3, '${NEWER}')`);
  await execute(databaseUrl, `INSERT INTO orders (pet_id, status) VALUES (1, '${NEWER}')`);
  for (const path of ['pets', 'store/orders'])
    expect((await call(`/v1/${path}`)).body).toMatchObject([{ id: 1, status: NEWER }]);
  for (const protocol of PROTOCOLS) {
    const askBy = (operation: Asked, input: Record<string, unknown>) => ask(protocol, call, operation, input);
    expect((await askBy('getPet', { petId: 1 })).result.status).toBe(NEWER);
    expect((await askBy('getOrder', { orderId: 1 })).result.status).toBe(NEWER);
    for (const status of NEXT_STATUSES)
      expect((await askBy('updateOrder', { orderId: 1, status })).code).toBe('order_closed');
    expect((await askBy('createOrder', { petId: 1 })).code).toBe('pet_not_available');
    const change = { petId: 1, name: `Rex over ${protocol}` };
    expect((await askBy('updatePet', change)).result).toMatchObject({
      id: 1,
      name: change.name,
      status: NEWER,
    });
    const refused = await askBy('updatePet', { ...change, name: 'Max', expectedStatus: 'available' });
    expect([refused.code, refused.result.message]).toEqual([
      'pet_status_changed',
      expect.stringContaining(`is ${NEWER} by now`),
    ]);
    expect((await askBy('getPet', { petId: 1 })).result.name).toBe(change.name);
  }
  const statuses = 'SELECT status::text FROM pets UNION ALL SELECT status::text FROM orders';
  expect(await execute(databaseUrl, statuses)).toEqual([{ status: NEWER }, { status: NEWER }]);
});
