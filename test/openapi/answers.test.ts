import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  type Answer,
  type Caller,
  callerOf,
  createTestDatabase,
  post,
  startService,
  type TestService,
} from '../support/harness.js';
import { expectDescribed, listOperations } from '../support/openapi-checker.js';
import { startWire, type Wire } from '../support/wire.js';

type Init = Parameters<Caller>[1];

let wire: Wire;
let service: TestService;
let call: Caller;
const closers: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  const url = new URL(await createTestDatabase());
  wire = await startWire({ host: url.hostname, port: Number(url.port) });
  url.port = String(wire.port);
  service = await startService({ databaseUrl: url.href });
  call = callerOf(service);
  const { pool } = service.database;
  await pool.query(`INSERT INTO pets (name, category_id) SELECT 'Rex ' || n, n FROM generate_series(1, 5) n`);
  await pool.query(`INSERT INTO orders (pet_id, quantity) SELECT id, 1 FROM pets`);
});
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
  await service.close();
  await wire.close();
});

/** One request that is in order for each operation. */
const ORDINARY: Record<string, [string, Init?]> = {
  listPets: ['/pets'],
  createPet: ['/pets', post({ name: 'Rex', categoryId: 1 })],
  getPet: ['/pets/1'],
  listOrders: ['/store/orders'],
};
const operations = listOperations().map((operation) => operation.operationId);

function find(operationId: string) {
  const operation = listOperations().find((candidate) => candidate.operationId === operationId);
  if (operation === undefined) throw new Error(`${operationId} is not in the document`);
  return operation;
}

const seen = new Set<string>();

function expectSaid(operationId: string, answer: Answer): void {
  expectDescribed(find(operationId), answer);
  seen.add(`${operationId} ${answer.status}`);
}

async function expectStatus(operationId: string, status: number, path: string, init?: Init, by = call) {
  const answer = await by(`/v1${path}`, init);
  expect([operationId, path, answer.status]).toEqual([operationId, path, status]);
  expectSaid(operationId, answer);
  return answer;
}

async function expectEvery(status: number, init: Init = {}, by = call): Promise<void> {
  for (const operationId of operations) {
    const [path, own] = ORDINARY[operationId] ?? ['/'];
    await expectStatus(operationId, status, path, { ...own, ...init }, by);
  }
}

test('what an operation answers is as the document says', async () => {
  await expectStatus('listPets', 200, '/pets');
  await expectStatus('listPets', 200, '/pets?status=sold');
  expect((await expectStatus('listPets', 200, '/pets?limit=2&cursor=1')).headers.has('link')).toBe(true);
  const created = await expectStatus('createPet', 201, '/pets', post({ name: 'Rex', categoryId: 1 }));
  await expectStatus('getPet', 200, `/pets/${created.body.id}`);
  const orders = await expectStatus('listOrders', 200, '/store/orders?limit=2');
  expect(orders.body).toHaveLength(2);
  expect(orders.headers.has('link')).toBe(true);
});

const WRONG: [string, number, string, Init?][] = [
  ['listPets', 400, '/pets?limit=0'],
  ['listPets', 400, '/pets?status=lost'],
  ['listPets', 400, '/pets?cursor=x'],
  ['listPets', 400, '/pets?limit=1&limit=2'],
  ['listOrders', 400, '/store/orders?limit=101'],
  ['createPet', 400, '/pets', post('{')],
  ['createPet', 400, '/pets', post({})],
  ['createPet', 400, '/pets', post({ name: '', categoryId: 1.5, status: 'lost' })],
  ['createPet', 400, '/pets', post({ name: 'Rex', categoryId: 1 }, { 'idempotency-key': 'with space' })],
  ['createPet', 413, '/pets', post('x'.repeat(70_000))],
  ['createPet', 415, '/pets', post('{}', { 'content-type': 'text/plain' })],
  ['createPet', 415, '/pets', post('{}', { 'content-encoding': 'gzip' })],
  ['getPet', 404, '/pets/999999'],
  ['getPet', 404, '/pets/nope'],
  ['getPet', 404, `/pets/${2 ** 53}`],
  ['listPets', 405, '/pets', { method: 'DELETE' }],
  ['createPet', 405, '/pets', { method: 'PUT', body: '{}' }],
  ['getPet', 405, '/pets/1', { method: 'PATCH', body: '{}' }],
  ['listOrders', 405, '/store/orders', post({})],
];

test('every wrong request is refused as the document says', async () => {
  for (const [operationId, status, path, init] of WRONG) await expectStatus(operationId, status, path, init);
});

test('without a valid key every operation answers as the document says', async () => {
  await expectEvery(401, { key: null });
  await expectEvery(401, { key: 'nonsense' });
});

test('over the limit, and banned, every operation answers as the document says', async () => {
  const limited = { plan: 'enterprise', perMinute: 1, perDay: 100, expiresAt: null } as const;
  for (const operationId of operations) {
    const { key } = await service.keys.create({ name: operationId, ...limited });
    const [path, init] = ORDINARY[operationId] ?? ['/'];
    const answers = [];
    for (let n = 0; n < 3; n += 1) answers.push(await call(`/v1${path}`, { ...init, key }));
    for (const answer of answers) expectSaid(operationId, answer);
    expect(answers.slice(1).map(({ body }) => body.code)).toEqual(['rate_limit_exceeded', 'api_key_banned']);
  }
});

test('with its database away or at fault every operation answers as the document says', async () => {
  await call('/v1/pets');
  await service.database.pool.query('ALTER TABLE pets RENAME TO lost');
  await service.database.pool.query('ALTER TABLE orders RENAME TO lost_orders');
  await expectEvery(500);
  await wire.cut();
  await expectEvery(503);
});

test('a create that is repeated answers as the document says', async () => {
  const body = { name: 'Rex', categoryId: 1 };
  const first = await expectStatus('createPet', 201, '/pets', post(body, { 'idempotency-key': 'one' }));
  const replay = await expectStatus('createPet', 201, '/pets', post(body, { 'idempotency-key': 'one' }));
  expect([replay.headers.get('idempotency-replayed'), replay.body]).toEqual(['true', first.body]);
  expect(replay.headers.get('location')).toBe(first.headers.get('location'));
  await expectStatus('createPet', 422, '/pets', post({ ...body, name: 'Tom' }, { 'idempotency-key': 'one' }));
});

test('a create that meets its first still running answers as the document says', async () => {
  const first = await service.database.pool.connect();
  await first.query('BEGIN');
  await first.query(
    `SELECT pg_advisory_xact_lock(hashtextextended(id || ' createPet 0 two', 0)) FROM api_keys`,
  );
  closers.push(async () => first.release());
  const init = post({ name: 'Rex', categoryId: 1 }, { 'idempotency-key': 'two' });
  await expectStatus('createPet', 409, '/pets', init).finally(() => first.query('ROLLBACK'));
});

test('getPet says farewell before its removal, and answers as the document says after it', async () => {
  for (const init of [{}, { key: null }]) {
    const { headers } = await call('/v1/pets/1', init);
    expect(headers.get('deprecation')).toBe('@1764892800');
    expect(headers.get('sunset')).toBe('Thu, 05 Dec 2030 00:00:00 GMT');
    expect(headers.get('link')).toContain('rel="successor-version"');
  }
  const later = await startService({ now: () => Date.parse('2030-12-05T00:00:00Z') });
  closers.push(() => later.close());
  await expectStatus('getPet', 410, '/pets/1', {}, callerOf(later));
});

test('the check itself notices what the document does not say', async () => {
  const { status, headers, body } = await call('/v1/pets/1');
  const check = (change: Partial<Answer>) => () =>
    expectDescribed(find('getPet'), { status, headers, body, ...change });
  const changed = (name: string, value: string | null) => {
    const copy = new Headers(headers);
    if (value === null) copy.delete(name);
    else copy.set(name, value);
    return { headers: copy };
  };
  expect(check({})).not.toThrow();
  expect(check({ status: 202 })).toThrow(/not in the document/);
  expect(check(changed('x-ratelimit-limit', null))).toThrow(/X-RateLimit-Limit/);
  expect(check(changed('ratelimit', 'many'))).toThrow(/RateLimit/);
  expect(check(changed('x-powered-by', 'us'))).toThrow(/x-powered-by/);
  expect(check(changed('content-type', 'text/html'))).toThrow(/text\/html/);
  expect(check({ body: { ...body, secret: 1 } })).toThrow(/getPet 200: .*NOT have additional/);
  expect(check({ body: { ...body, id: '1' } })).toThrow(/getPet 200: .*id must be/);
});

test('every status that the document lists was brought about by a request above', () => {
  const listed = listOperations().flatMap(({ operationId, responses }) =>
    Object.keys(responses).map((status) => `${operationId} ${status}`),
  );
  expect([...seen].sort()).toEqual(listed.sort());
});
