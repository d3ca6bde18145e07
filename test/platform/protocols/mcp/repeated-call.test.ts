import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectClient, MODE_NAMES, type Mode, toolCall, toolCalls } from '../../../support/mcp.js';
import {
  type Caller,
  createCaller,
  post,
  startService,
  type TestService,
} from '../../../support/test-service.js';

let service: TestService;
let call: Caller;

beforeAll(async () => {
  service = await startService();
  call = createCaller(service);
});
afterAll(() => service.close());

async function countPets(name: string): Promise<number> {
  const { rows } = await service.database.pool.query('SELECT count(*)::int FROM pets WHERE name = $1', [
    name,
  ]);
  return rows[0].count;
}

/** Sends a request, and cuts the connection at the first byte of its response. */
async function cutOff({ headers, body }: RequestInit): Promise<void> {
  const socket = connect(service.port, '127.0.0.1');
  const sent = {
    host: 'x',
    authorization: `Bearer ${service.key}`,
    'content-length': String(Buffer.byteLength(String(body))),
  };
  const fields = Object.entries({ ...(headers as Record<string, string>), ...sent });
  socket.write(
    `POST /mcp HTTP/1.1\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`,
  );
  await once(socket, 'data');
  socket.destroy();
}

test.each(MODE_NAMES)(
  'a call of %s whose response is cut off, sent again under another id, adds one animal',
  async (mode) => {
    const pet = { name: `Cut ${mode}`, categoryId: 1, idempotencyKey: `cut-${mode}` };
    await cutOff(toolCalls[mode]('createPet', pet));
    const client = await connectClient(service, mode);
    const results = await Promise.all(
      [1, 2, 3].map(() => client.callTool({ name: 'createPet', arguments: pet })),
    );
    for (const { structuredContent } of results)
      expect(structuredContent).toEqual(results[0]?.structuredContent);
    expect(await countPets(pet.name)).toBe(1);
  },
);

test('without the argument, each call adds one', async () => {
  for (const _ of [1, 2]) await call('/mcp', toolCall('createPet', { name: 'Twice', categoryId: 1 }));
  expect(await countPets('Twice')).toBe(2);
});

const create = async (args: object, headers: Record<string, string> = {}, mode: Mode = '2026-07-28') => {
  const { body, headers: answered } = await call('/mcp', toolCalls[mode]('createPet', args, headers));
  return { ...body.result.structuredContent, replayed: answered.get('idempotency-replayed') };
};

test('the header works as well, and wins over the argument', async () => {
  const pet = { name: 'Header', categoryId: 1 };
  const first = await create(pet, { 'idempotency-key': 'header' });
  expect(first.replayed).toBeNull();
  expect(await create(pet, { 'idempotency-key': 'header' }, '2025-11-25')).toEqual({
    ...first,
    replayed: 'true',
  });
  expect(await create({ ...pet, idempotencyKey: 'header' })).toMatchObject({ id: first.id });
  expect(await create({ ...pet, idempotencyKey: 'other' }, { 'idempotency-key': 'header' })).toMatchObject({
    id: first.id,
  });
  expect(await create({ ...pet, idempotencyKey: 7 }, { 'idempotency-key': 'header' })).toMatchObject({
    id: first.id,
  });
});

test('the same arguments are the same in any order, and over every protocol', async () => {
  const { id } = await create({ name: 'Order', categoryId: 1, status: 'sold', idempotencyKey: 'order' });
  expect(
    await create({ idempotencyKey: 'order', status: 'sold', categoryId: 1, name: 'Order' }),
  ).toMatchObject({ id });
  const body = { name: 'Order', categoryId: 1, status: 'sold' };
  const { body: pet, headers } = await call('/v1/pets', post(body, { 'idempotency-key': 'order' }));
  expect([pet.id, headers.get('idempotency-replayed')]).toEqual([id, 'true']);
  expect(await countPets('Order')).toBe(1);
});

test('the same key with other arguments is an error that says so', async () => {
  await create({ name: 'First', categoryId: 1, idempotencyKey: 'reused' });
  expect(await create({ name: 'Second', categoryId: 1, idempotencyKey: 'reused' })).toMatchObject({
    code: 'idempotency_key_reused',
    status: 422,
    message: expect.stringContaining('choose a new one'),
    replayed: null,
  });
  expect(await countPets('Second')).toBe(0);
});

test('a malformed key is an error of that argument, and nothing is added', async () => {
  for (const idempotencyKey of ['', 'with space', 'ü', 'x'.repeat(256), 7, null, {}, []]) {
    expect(await create({ name: 'Malformed', categoryId: 1, idempotencyKey })).toMatchObject({
      code: 'invalid_request',
      fields: { idempotencyKey: expect.stringContaining('visible ASCII') },
    });
  }
  expect((await create({ name: 'Malformed', categoryId: 1 }, { 'idempotency-key': 'ü' })).code).toBe(
    'invalid_request',
  );
  expect(await countPets('Malformed')).toBe(0);
});
