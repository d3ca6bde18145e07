import { createCaller, execute, message, PROTOCOLS, post } from '@animal-store/platform/testing';
import { expect, onTestFinished, test } from 'vitest';
import { BEGIN_FOR_LONG } from '../../packages/platform/test/support/begin-for-long.js';
import { NEXT_STATUSES, ONE_OPEN_ORDER, OPEN_STATUSES, petStatusWith } from '../../src/order-progress.js';
import { runInProcess } from '../support/programs.js';
import { createTestDatabase, startService, useService } from '../support/service.js';
import { type Asked, ask } from './ask.js';
import { killWhileWaiting } from './kill-while-waiting.js';
import { expectSound } from './sound.js';

const { call, service } = useService();

async function addPet(status = 'available'): Promise<number> {
  return (await call('/v1/pets', post({ name: 'Rex', categoryId: 3, status }))).body.id;
}
const statusOf = async (petId: number) => (await call(`/v1/pets/${petId}`)).body.status;
const patch = (body: unknown) => ({ ...post(body), method: 'PATCH' });

/** The call, its answer (members of the output, or the code of the error), and the status of the animal afterwards. */
type Step = readonly [operation: Asked, input: object, answer: object | string, pet: string];
const DAY: readonly Step[] = [
  ['updateOrder', { orderId: 2 ** 40, status: 'approved' }, 'not_found', 'available'],
  ['createOrder', {}, { status: 'placed' }, 'pending'],
  ['createOrder', {}, 'pet_not_available', 'pending'],
  ['updatePet', { status: 'available' }, 'pet_has_open_order', 'pending'],
  ['updatePet', { status: 'sold', name: 'Lost' }, 'pet_has_open_order', 'pending'],
  ['updatePet', { status: 'pending', name: 'Max' }, { status: 'pending', name: 'Max' }, 'pending'],
  ['updatePet', { categoryId: 9 }, { name: 'Max', categoryId: 9 }, 'pending'],
  ['updateOrder', { status: 'placed' }, 'invalid_request', 'pending'],
  ['updateOrder', { status: 'approved' }, { status: 'approved' }, 'pending'],
  ['updateOrder', { status: 'approved' }, { status: 'approved' }, 'pending'],
  ['updatePet', { status: 'available' }, 'pet_has_open_order', 'pending'],
  ['updateOrder', { status: 'cancelled' }, { status: 'cancelled' }, 'available'],
  ['updateOrder', { status: 'cancelled' }, { status: 'cancelled' }, 'available'],
  ['updateOrder', { status: 'approved' }, 'order_closed', 'available'],
  ['updateOrder', { status: 'delivered' }, 'order_closed', 'available'],
  ['updatePet', { status: 'sold' }, { status: 'sold' }, 'sold'],
  ['updateOrder', { status: 'cancelled' }, { status: 'cancelled' }, 'sold'],
  ['createOrder', {}, 'pet_not_available', 'sold'],
  ['updatePet', { status: 'available' }, { status: 'available' }, 'available'],
  ['createOrder', {}, { status: 'placed' }, 'pending'],
  ['updateOrder', { status: 'delivered' }, { status: 'delivered' }, 'sold'],
  ['updateOrder', { status: 'delivered' }, { status: 'delivered' }, 'sold'],
  ['updateOrder', { status: 'approved' }, 'order_closed', 'sold'],
  ['updateOrder', { status: 'cancelled' }, 'order_closed', 'sold'],
  ['updatePet', { status: 'available' }, { status: 'available' }, 'available'],
  ['createOrder', {}, { status: 'placed' }, 'pending'],
  ['updateOrder', { status: 'cancelled' }, { status: 'cancelled' }, 'available'],
  ['createOrder', {}, { status: 'placed' }, 'pending'],
  ['updateOrder', { status: 'approved' }, { status: 'approved' }, 'pending'],
  ['updateOrder', { status: 'delivered' }, { status: 'delivered' }, 'sold'],
];

test.each(PROTOCOLS)("over %s a shop's day has the answers of the table, call by call", async (name) => {
  const petId = await addPet();
  let orderId = 0;
  for (const [n, [operation, input, answer, pet]] of DAY.entries()) {
    const own = operation === 'updateOrder' ? { orderId } : { petId };
    const { code, result } = await ask(name, call, operation, { ...own, ...input });
    expect([n, code ?? result]).toEqual([
      n,
      typeof answer === 'string' ? answer : { ...result, ...answer, code: undefined },
    ]);
    if (operation === 'createOrder' && code === undefined) orderId = result.id;
    if (orderId > 0)
      expect((await ask(name, call, 'getOrder', { orderId })).result).toMatchObject({ id: orderId, petId });
    expect([n, await statusOf(petId)]).toEqual([n, pet]);
  }
});

test('what refuses the status of an animal names its open order', async () => {
  const petId = await addPet();
  const { body } = await call('/v1/store/orders', post({ petId }));
  const refused = await call(`/v1/pets/${petId}`, patch({ status: 'sold' }));
  expect([refused.status, refused.body.message]).toEqual([409, expect.stringContaining(`order ${body.id},`)]);
});

test('what is no status that may follow is a 400 that names those, and changes nothing', async () => {
  const petId = await addPet();
  const { body } = await call('/v1/store/orders', post({ petId }));
  for (const status of ['placed', 'lost', '', null, 1, undefined, ['cancelled']]) {
    const refused = await call(`/v1/store/orders/${body.id}`, patch({ status }));
    expect([status, refused.status]).toEqual([status, 400]);
  }
  const refused = await call(`/v1/store/orders/${body.id}`, patch({ status: 'placed' }));
  expect(refused.body.message).toContain('status must be one of approved, delivered, cancelled');
  expect((await call(`/v1/store/orders/${body.id}`)).body).toEqual(body);
});

test.each(NEXT_STATUSES.filter((status) => petStatusWith(status) !== 'pending'))(
  'a process that is killed between an order that is %s and its animal has changed both or neither',
  async (status) => {
    const petId = await addPet();
    const { body: placed } = await call('/v1/store/orders', post({ petId }));
    // Within the statement, the order has its new status by the time that the animal is changed.
    await execute(
      service.databaseUrl,
      `CREATE FUNCTION await_holder() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END';
      CREATE TRIGGER await_holder BEFORE UPDATE ON pets FOR EACH ROW EXECUTE FUNCTION await_holder()`,
    );
    onTestFinished(async () => {
      await execute(service.databaseUrl, 'DROP FUNCTION await_holder CASCADE');
    });
    const address = `/v1/store/orders/${placed.id}`;
    await killWhileWaiting(service, 'SELECT pg_advisory_xact_lock(1)', (killed) =>
      killed(address, patch({ status })),
    );
    const { body: found } = await call(address);
    expect([placed, { ...placed, status }]).toContainEqual(found);
    expect(await statusOf(petId)).toBe(petStatusWith(found.status));
    expect((await ask('REST', call, 'updateOrder', { orderId: placed.id, status })).result.status).toBe(
      status,
    );
    await expectSound(service.databaseUrl);
  },
);

test('whoever inserts a second open order of an animal is refused by PostgreSQL, and such an animal cannot be ordered', async () => {
  const petId = await addPet();
  const { pool } = service.database;
  for (const status of OPEN_STATUSES) {
    const { rows } = await pool.query('INSERT INTO orders (pet_id, status) VALUES ($1, $2) RETURNING id', [
      petId,
      status,
    ]);
    await expect(pool.query('INSERT INTO orders (pet_id) VALUES ($1)', [petId])).rejects.toThrow(
      'orders_open_pet_id_key',
    );
    // The animal is available, as nobody may make it over the API.
    for (const name of PROTOCOLS)
      expect((await ask(name, call, 'createOrder', { petId })).code).toBe('pet_not_available');
    expect(await statusOf(petId)).toBe('available');
    await pool.query('DELETE FROM orders WHERE id = $1', [rows[0].id]);
  }
});

test('an order whose id is stored already is a 503, and the next one draws another id', async () => {
  const databaseUrl = await createTestDatabase();
  const other = await startService({ databaseUrl });
  const callOther = createCaller(other);
  for (let n = 0; n < 3; n += 1) await callOther('/v1/pets', post({ name: 'Rex', categoryId: 1 }));
  // As a restore of the data alone does.
  await other.database.pool.query('INSERT INTO orders (id, pet_id) OVERRIDING SYSTEM VALUE VALUES (1, 1)');
  const statuses = [];
  for (let n = 0; n < 2; n += 1)
    statuses.push((await callOther('/v1/store/orders', post({ petId: 2 }))).status);
  await other.close();
  expect(statuses).toEqual([503, 201]);
});

test('of several open orders that an animal has before the migration, the newest stays open, and the migration says how many it cancels', async () => {
  const databaseUrl = await createTestDatabase();
  const before = ['delivered', 'placed', 'approved', 'placed', 'delivered'].map(
    (status) => `(1, '${status}')`,
  );
  await execute(
    databaseUrl,
    `DROP INDEX orders_open_pet_id_key;
    DELETE FROM _prisma_migrations WHERE migration_name LIKE '%_one_open_order';
    INSERT INTO pets (name, category_id) VALUES ('Rex', 1), ('Max', 1);
    INSERT INTO orders (pet_id, status) VALUES ${before}, (2, 'approved')`,
  );
  const { output } = await runInProcess(['migrate'], { DATABASE_URL: databaseUrl });
  expect(output).toMatch(/^2 open order\(s\) are now cancelled: [^\n]*\napplied \d+_one_open_order\n$/);
  const rows = await execute<{ status: string }>(databaseUrl, 'SELECT status FROM orders ORDER BY id');
  expect(rows.map(({ status }) => status)).toEqual([
    'delivered',
    'cancelled',
    'cancelled',
    'placed',
    'delivered',
    'approved',
  ]);
});

test('the index that keeps an animal from having two open orders knows which statuses are open', async () => {
  const [found] = await execute<{ condition: string }>(
    service.databaseUrl,
    `SELECT pg_get_expr(indpred, indrelid) AS condition FROM pg_index WHERE indexrelid = '${ONE_OPEN_ORDER}'::regclass`,
  );
  const statuses = [...(found?.condition ?? '').matchAll(/'(\w+)'/g)].map(([, status]) => status);
  expect(statuses.sort()).toEqual([...OPEN_STATUSES].sort());
});

test('as tools they say what cannot be undone, and that moving an order on twice changes nothing further', async () => {
  const { tools } = (await call('/mcp', message('tools/list'))).body.result;
  const annotationsOf = (tool: string) =>
    tools.find(({ name }: { name: string }) => name === tool).annotations;
  const destructive = { readOnlyHint: false, destructiveHint: true, openWorldHint: false };
  expect(annotationsOf('updateOrder')).toEqual({ ...destructive, idempotentHint: true });
  expect(annotationsOf('createOrder')).toEqual({ ...destructive, idempotentHint: false });
});

test('an order that somebody adds with SQL and has not committed holds up the orders of its animal alone', async () => {
  const [petId, other] = [await addPet(), await addPet()];
  const holder = await service.database.pool.connect();
  await holder.query(`${BEGIN_FOR_LONG}; INSERT INTO orders (pet_id) VALUES (${petId})`);
  const waiting = call('/v1/store/orders', post({ petId }));
  await expect
    .poll(
      async () =>
        (
          await execute(
            service.databaseUrl,
            "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
          )
        ).length,
    )
    .toBeGreaterThan(0);
  expect((await ask('REST', call, 'createOrder', { petId: other })).code).toBeUndefined();
  await holder.query('COMMIT');
  holder.release();
  expect([409, 503]).toContain((await waiting).status);
  expect((await ask('REST', call, 'createOrder', { petId })).code).toBe('pet_not_available');
});
