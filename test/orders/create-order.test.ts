import { randomUUID } from 'node:crypto';
import { type Caller, createCaller, PROTOCOLS, type Protocol, post } from '@animal-store/platform/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startService, useService } from '../support/service.js';
import { type Answer, ask, protocolOf } from './ask.js';
import { killWhileWaiting } from './kill-while-waiting.js';

/** Callers of two nodes that share a database */
let callOther: Caller;

const { call, service } = useService();

beforeAll(async () => {
  const other = await startService({ databaseUrl: service.databaseUrl });
  afterAll(() => other.close());
  callOther = createCaller({ ...other, key: service.key });
});

type Placed = Omit<Answer, 'code'> & { readonly status: number };

/** Places an order as a careful client does, which sends it again with the same Idempotency-Key after a 503. */
async function place(
  protocol: Protocol,
  order: Readonly<Record<string, unknown>>,
  by = call,
  key: string = randomUUID(),
): Promise<Placed> {
  const { code, result, isReplay } = await ask(protocol, by, 'createOrder', order, {
    'idempotency-key': key,
  });
  return { status: code === undefined ? 201 : result.status, result, isReplay };
}

async function addPet(status = 'available'): Promise<number> {
  return (await call('/v1/pets', post({ name: 'Rex', categoryId: 3, status }))).body.id;
}

const statusOf = async (petId: number) => (await call(`/v1/pets/${petId}`)).body.status;

async function ordersOf(petId: number): Promise<number[]> {
  const { rows } = await service.database.pool.query('SELECT id::int FROM orders WHERE pet_id = $1', [petId]);
  return rows.map(({ id }) => id);
}

test.each(PROTOCOLS)(
  'over %s an order of an available animal is placed, and the animal is pending',
  async (name) => {
    const petId = await addPet();
    const before = Date.now();
    const { status, result } = await place(name, { petId });
    const expected = {
      id: expect.any(Number),
      petId,
      status: 'placed',
      createdAt: expect.any(String),
    };
    expect([status, result]).toEqual([201, expected]);
    // The clock of the database is that of this machine.
    expect(Date.parse(result.createdAt)).toBeGreaterThanOrEqual(before - 1000);
    expect(await statusOf(petId)).toBe('pending');
    expect((await call(`/v1/store/orders?cursor=${result.id - 1}&limit=1`)).body).toEqual([result]);
  },
);

test('no Idempotency-Key is needed', async () => {
  const petId = await addPet();
  const { status, body } = await call('/v1/store/orders', post({ petId }));
  expect([status, body.petId, body.status]).toEqual([201, petId, 'placed']);
});

test.each(['pending', 'sold'])(
  'an animal that is %s cannot be ordered: 409, over every protocol',
  async (status) => {
    const petId = await addPet(status);
    for (const name of PROTOCOLS)
      expect((await place(name, { petId })).result).toMatchObject({ code: 'pet_not_available', status: 409 });
    expect([await ordersOf(petId), await statusOf(petId)]).toEqual([[], status]);
  },
);

test('an animal that there is not is a 400 that names petId, over every protocol', async () => {
  const message = expect.stringContaining('petId is not the id of an animal.');
  for (const name of PROTOCOLS)
    expect((await place(name, { petId: 999_999 })).result).toMatchObject({
      code: 'invalid_request',
      message,
    });
  const { body } = await call('/trpc/createOrder', post({ petId: 999_999 }));
  expect(body.error.data.fields).toEqual({ petId: 'is not the id of an animal' });
});

test('of 50 orders for one animal at once, over all protocols and two nodes, one is placed and the others are 409', async () => {
  const petId = await addPet();
  const nodes = [call, callOther];
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, n) => place(protocolOf(n), { petId }, nodes[n % nodes.length])),
  );
  const placed = answers.filter(({ status }) => status === 201);
  const refused = answers.filter(
    ({ status, result }) => status === 409 && result.code === 'pet_not_available',
  );
  expect([placed.length, refused.length]).toEqual([1, 49]);
  expect(await ordersOf(petId)).toEqual(placed.map(({ result }) => result.id));
});

test.each(PROTOCOLS)(
  'over %s 50 orders at once with one Idempotency-Key are one order, and all get its answer or are told to wait',
  async (name) => {
    const petId = await addPet();
    const key = `order-over-${name}`;
    const nodes = [call, callOther];
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, n) => place(name, { petId }, nodes[n % nodes.length], key)),
    );
    const [orderId] = await ordersOf(petId);
    for (const { status, result } of answers) {
      const expected = status === 201 ? [201, orderId] : [409, 'idempotency_key_in_use'];
      expect([status, result.code ?? result.id]).toEqual(expected);
    }
    expect(await ordersOf(petId)).toHaveLength(1);
    // Afterwards the animal is pending, and a repetition gets its order all the same.
    const again = await place(name, { petId }, callOther, key);
    expect(again).toMatchObject({ status: 201, isReplay: true, result: { id: orderId } });
  },
);

test('an order that was refused may be repeated with its Idempotency-Key once the animal is available again', async () => {
  const petId = await addPet('pending');
  expect((await place('REST', { petId }, call, 'again')).status).toBe(409);
  await call(`/v1/pets/${petId}`, { ...post({ status: 'available' }), method: 'PATCH' });
  expect(await place('REST', { petId }, call, 'again')).toMatchObject({ status: 201, isReplay: false });
});

test('a process that is killed between the animal and its order leaves both or neither, and the key says which', async () => {
  const petId = await addPet();
  // The order waits for its turn behind this one, with the animal locked.
  const hold = "SELECT 1 FROM insert_turns WHERE table_name = 'orders' FOR UPDATE";
  await killWhileWaiting(service, hold, (killed) =>
    killed('/v1/store/orders', post({ petId }, { 'idempotency-key': 'killed' })),
  );
  // PostgreSQL goes on with a statement that waits, and stores all of it once it may.
  const isPlaced = (await ordersOf(petId)).length > 0;
  expect(await statusOf(petId)).toBe(isPlaced ? 'pending' : 'available');
  expect(await place('REST', { petId }, call, 'killed')).toMatchObject({ status: 201, isReplay: isPlaced });
  expect([await statusOf(petId), (await ordersOf(petId)).length]).toEqual(['pending', 1]);
});

test('an order and its animal become visible together', async () => {
  const petIds = await Promise.all(Array.from({ length: 20 }, () => addPet()));
  let isOver = false;
  const look = async () => {
    while (!isOver) {
      const { rows } = await service.database.pool.query(
        `SELECT p.id FROM pets p LEFT JOIN orders o ON o.pet_id = p.id
        WHERE p.id = ANY ($1) AND (p.status = 'pending') <> (o.id IS NOT NULL)`,
        [petIds],
      );
      expect(rows).toEqual([]);
    }
  };
  const looking = look();
  const answers = await Promise.all(petIds.map((petId, n) => place(protocolOf(n), { petId })));
  isOver = true;
  await looking;
  expect(answers.map(({ status }) => status)).toEqual(petIds.map(() => 201));
});
