import { once } from 'node:events';
import { connect } from 'node:net';
import { toolCall } from '@animal-store/platform/testing';
import { expect, test } from 'vitest';
import { create, list, newItem, TABLE, TEXT } from '#operations-under-test';
import { connectClient, MODE_NAMES, type Mode, toolCalls } from '../../support/mcp.js';
import { useService } from '../../support/test-service.js';

const { call, service } = useService();

async function countItems(name: string): Promise<number> {
  const { rows } = await service.database.pool.query(
    `SELECT count(*)::int FROM ${TABLE} WHERE ${TEXT} = $1`,
    [name],
  );
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
  'a call of %s whose response is cut off, sent again under another id, adds one item',
  async (mode) => {
    const item = { ...newItem(`Cut ${mode}`), idempotencyKey: `cut-${mode}` };
    await cutOff(toolCalls[mode](create.name, item));
    const client = await connectClient(service, mode);
    const results = await Promise.all(
      [1, 2, 3].map(() => client.callTool({ name: create.name, arguments: item })),
    );
    for (const { structuredContent } of results)
      expect(structuredContent).toEqual(results[0]?.structuredContent);
    expect(await countItems(item[TEXT])).toBe(1);
  },
);

test('without the argument, each call adds one', async () => {
  for (const _ of [1, 2]) await call('/mcp', toolCall(create.name, newItem('Twice')));
  expect(await countItems('Twice')).toBe(2);
});

const callCreate = async (args: object, headers: Record<string, string> = {}, mode: Mode = '2026-07-28') => {
  const { body, headers: answered } = await call('/mcp', toolCalls[mode](create.name, args, headers));
  return { ...body.result.structuredContent, replayed: answered.get('idempotency-replayed') };
};

test('the header works as well, and wins over the argument', async () => {
  const item = newItem('Header');
  const first = await callCreate(item, { 'idempotency-key': 'header' });
  expect(first.replayed).toBeNull();
  expect(await callCreate(item, { 'idempotency-key': 'header' }, '2025-11-25')).toEqual({
    ...first,
    replayed: 'true',
  });
  expect(await callCreate({ ...item, idempotencyKey: 'header' })).toMatchObject({ id: first.id });
  expect(
    await callCreate({ ...item, idempotencyKey: 'other' }, { 'idempotency-key': 'header' }),
  ).toMatchObject({
    id: first.id,
  });
  expect(await callCreate({ ...item, idempotencyKey: 7 }, { 'idempotency-key': 'header' })).toMatchObject({
    id: first.id,
  });
});

test('the same arguments are the same in any order', async () => {
  const body = { ...newItem('Any order'), ...list.filter };
  const { id } = await callCreate({ ...body, idempotencyKey: 'order' });
  const reversed = Object.fromEntries(Object.entries(body).reverse());
  expect(await callCreate({ idempotencyKey: 'order', ...reversed })).toMatchObject({ id });
  expect(await countItems('Any order')).toBe(1);
});

test('the same key with other arguments is an error that says so', async () => {
  await callCreate({ ...newItem('First'), idempotencyKey: 'reused' });
  expect(await callCreate({ ...newItem('Second'), idempotencyKey: 'reused' })).toMatchObject({
    code: 'idempotency_key_reused',
    status: 422,
    message: expect.stringContaining('choose a new one'),
    replayed: null,
  });
  expect(await countItems('Second')).toBe(0);
});

test('a malformed key is an error of that argument, and nothing is added', async () => {
  for (const idempotencyKey of ['', 'with space', 'ü', 'x'.repeat(256), 7, null, {}, []]) {
    expect(await callCreate({ ...newItem('Malformed'), idempotencyKey })).toMatchObject({
      code: 'invalid_request',
      fields: {
        idempotencyKey: expect.stringContaining(idempotencyKey === null ? 'left out' : 'visible ASCII'),
      },
    });
  }
  // One answer names all that is wrong.
  const wrong = Object.keys(newItem(''))[0] as string;
  expect(await callCreate({ ...newItem('Malformed'), [wrong]: {}, idempotencyKey: null })).toMatchObject({
    message: expect.stringMatching(
      new RegExp(`^${wrong} must .*; idempotencyKey must .* null is not allowed\\.`),
    ),
    fields: { [wrong]: expect.any(String), idempotencyKey: expect.stringContaining('left out') },
  });
  expect((await callCreate(newItem('Malformed'), { 'idempotency-key': 'ü' })).code).toBe('invalid_request');
  expect(await countItems('Malformed')).toBe(0);
});
