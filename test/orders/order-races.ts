import { randomUUID } from 'node:crypto';
import { type Caller, createCaller, post } from '@animal-store/platform/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startService, type TestService } from '../support/service.js';
import { type Answer, type Asked, ask, protocolOf } from './ask.js';
import { expectSound } from './sound.js';

let service: TestService;
/** Callers of two nodes that share a database */
let nodes: readonly Caller[];

/** The nth call goes over one of the protocols to one of the nodes, as a careful client sends it. */
const send = (n: number, operation: Asked, input: Readonly<Record<string, unknown>>) =>
  ask(
    protocolOf(n),
    nodes[(n >> 1) % nodes.length] as Caller,
    operation,
    input,
    operation === 'createOrder' ? { 'idempotency-key': randomUUID() } : {},
  );
const call: Caller = (...given) => (nodes[0] as Caller)(...given);
const FORM = { name: 'Rex', categoryId: 3, status: 'available' };
const addPet = async (): Promise<number> => (await call('/v1/pets', post(FORM))).body.id;
const statusOf = async (petId: number) => (await call(`/v1/pets/${petId}`)).body.status;
const placed = async (n: number, petId: number): Promise<number> =>
  (await send(n, 'createOrder', { petId })).result.id;
const codesOf = (answers: readonly Answer[]) => [...new Set(answers.map(({ code }) => code ?? 'done'))];

/** The statuses of the orders of an animal, by their ids. */
async function ordersOf(petId: number): Promise<string[]> {
  const { body } = await call(`/v1/store/orders?petId=${petId}`);
  return body.map(({ status }: { status: string }) => status);
}

/** Tests each race so many times, over all protocols and two nodes. */
export function testRaces(rounds: number): void {
  beforeAll(async () => {
    service = await startService();
    const other = await startService({ databaseUrl: service.databaseUrl });
    afterAll(() => other.close());
    nodes = [createCaller(service), createCaller({ ...other, key: service.key })];
  });
  afterAll(() => service.close());

  test('a form that was opened before an order and is sent back whole does not sell the animal a second time', async () => {
    for (const round of Array(rounds).keys()) {
      const petId = await addPet();
      const answers = await Promise.all(
        Array.from({ length: 9 }, (_, n) =>
          n % 3 === 0
            ? send(round + n, 'createOrder', { petId })
            : send(round + n, 'updatePet', { petId, ...FORM }),
        ),
      );
      expect(answers.filter(({ result }) => result.petId === petId)).toHaveLength(1);
      expect((await send(round, 'updatePet', { petId, ...FORM })).code).toBe('pet_has_open_order');
      expect((await send(round, 'createOrder', { petId })).code).toBe('pet_not_available');
      expect([await ordersOf(petId), await statusOf(petId)]).toEqual([['placed'], 'pending']);
    }
    await expectSound(service.databaseUrl);
  });

  test('of 20 forms that expect an animal to be available, exactly one marks it as sold, and the others are told', async () => {
    for (const round of Array(rounds).keys()) {
      const petId = await addPet();
      const form = { petId, status: 'sold', expectedStatus: 'available' };
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, n) => send(round + n, 'updatePet', { ...form, name: `${n}` })),
      );
      const { name, status } = (await call(`/v1/pets/${petId}`)).body;
      expect(status).toBe('sold');
      const [stored] = answers.splice(Number(name), 1);
      if (stored?.isRepeated !== true) expect(stored?.code).toBeUndefined();
      expect(codesOf(answers)).toEqual(['pet_status_changed']);
    }
  });

  test('forms that were loaded while an order was open do not put its animal up for sale again beside the delivery', async () => {
    for (const round of Array(rounds).keys()) {
      const petId = await addPet();
      const orderId = await placed(round, petId);
      const form = { petId, ...FORM, expectedStatus: 'pending' };
      const [delivered, ...forms] = await Promise.all([
        send(round, 'updateOrder', { orderId, status: 'delivered' }),
        ...Array.from({ length: 9 }, (_, n) => send(round + n, 'updatePet', form)),
      ]);
      expect(delivered.code).toBeUndefined();
      for (const { code } of forms) expect(['pet_has_open_order', 'pet_status_changed']).toContain(code);
      expect((await send(round, 'updatePet', form)).code).toBe('pet_status_changed');
      expect(await statusOf(petId)).toBe('sold');
    }
    await expectSound(service.databaseUrl);
  });

  test('of 20 that cancel an order at once all are told that it is cancelled, and its animal is available', async () => {
    for (const round of Array(rounds).keys()) {
      const petId = await addPet();
      const orderId = await placed(round, petId);
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          send(round + n, 'updateOrder', { orderId, status: 'cancelled' }),
        ),
      );
      expect(codesOf(answers)).toEqual(['done']);
      expect([await ordersOf(petId), await statusOf(petId)]).toEqual([['cancelled'], 'available']);
    }
    await expectSound(service.databaseUrl);
  });

  test('of 20 that deliver or cancel an order at once one side wins, and the others are told that it is closed', async () => {
    for (const round of Array(rounds).keys()) {
      const petId = await addPet();
      const orderId = await placed(round, petId);
      const asked = Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? 'delivered' : 'cancelled'));
      const answers = await Promise.all(
        asked.map((status, n) => send(round + n, 'updateOrder', { orderId, status })),
      );
      const [status] = await ordersOf(petId);
      expect(answers.map(({ code }) => code)).toEqual(
        asked.map((wanted) => (wanted === status ? undefined : 'order_closed')),
      );
      expect(await statusOf(petId)).toBe(status === 'delivered' ? 'sold' : 'available');
    }
    await expectSound(service.databaseUrl);
  });

  test('an order that is cancelled beside new orders of its animal makes room for one of them at most', async () => {
    for (const round of Array(rounds).keys()) {
      const petId = await addPet();
      const orderId = await placed(round, petId);
      const [cancelled, ...others] = await Promise.all([
        send(round, 'updateOrder', { orderId, status: 'cancelled' }),
        ...Array.from({ length: 8 }, (_, n) => send(round + n, 'createOrder', { petId })),
      ]);
      expect(cancelled.code).toBeUndefined();
      const further = others.filter(({ code }) => code === undefined).length;
      expect(further).toBeLessThanOrEqual(1);
      expect(others.filter(({ code }) => code === 'pet_not_available')).toHaveLength(8 - further);
      const expected = further === 0 ? [['cancelled'], 'available'] : [['cancelled', 'placed'], 'pending'];
      expect([await ordersOf(petId), await statusOf(petId)]).toEqual(expected);
    }
    await expectSound(service.databaseUrl);
  });
}
