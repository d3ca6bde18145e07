import { type Caller, post, toolCall, untilServed } from '@animal-store/platform/testing';
import { beforeEach, expect, test } from 'vitest';
import {
  create,
  createItemStore,
  type Item,
  type ItemStore,
  itemSchema,
  list,
  newItemSchema,
} from '#operations-under-test';
import { createProcedure } from '../../src/operations/builder.js';
import type { Resource } from '../../src/operations/resource.js';
import { useService } from '../support/test-service.js';

// What a .use() is called for, and that everything around it holds. What it throws: parity.test.ts.

let calls = 0;
const counted = createProcedure<{ readonly counted: ItemStore }>().use(({ ctx, next }) => {
  calls += 1;
  return next({ ctx: { owner: ctx.apiKey.id } });
});
const resource: Resource<ItemStore> = {
  name: 'counted',
  description: 'What a middleware counts',
  createStore: createItemStore,
  procedures: {
    createCounted: counted
      .meta({
        openapi: { method: 'POST', path: '/counted', summary: 'Add' },
        stability: 'beta',
        scope: create.scope,
        success: { status: 201, location: ({ id }: Item) => `/counted/${id}` },
        idempotent: true,
      })
      .input(newItemSchema)
      .output(itemSchema)
      .mutation(({ ctx, input }) => ctx.once((key) => ctx.counted.create(input, key))),
  },
};

const { call, service } = useService({ resources: [resource] });
beforeEach(() => {
  calls = 0;
});

const REST = '/v1/counted';
const RPC = '/trpc/createCounted';
const send = (path: string, init: Parameters<Caller>[1]) => untilServed(() => call(path, init));
const useTool = async (input: object) =>
  (await send('/mcp', toolCall('createCounted', input))).body.result.structuredContent;

test('a create with a middleware is repeated safely over all protocols', async () => {
  for (const path of [REST, RPC]) {
    const init = post(create.body, { 'idempotency-key': path });
    const first = await send(path, init);
    const again = await send(path, init);
    expect([first.status < 300, again.body]).toEqual([true, first.body]);
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    const { status } = await send(path, post(create.body, { 'idempotency-key': 'ü' }));
    expect(status).toBe(400);
  }
  const other = await send(REST, post({ ...create.body, extra: 1 }, { 'idempotency-key': REST }));
  expect([other.status, other.body.code]).toEqual([422, 'idempotency_key_reused']);
  const first = await useTool({ ...create.body, idempotencyKey: 'tool' });
  expect(first).toMatchObject({ id: expect.any(Number), ...create.body });
  expect(await useTool({ ...create.body, idempotencyKey: 'tool' })).toEqual(first);
  expect(await useTool({ ...create.body, idempotencyKey: '' })).toMatchObject({
    code: 'invalid_request',
    fields: { idempotencyKey: expect.any(String) },
  });
});

test('what refuses a request comes before its middleware: the scope, a limit, a rehearsal', async () => {
  const { key: reader } = await service.keys.create({
    name: 'reads',
    plan: 'pro',
    expiresAt: null,
    scopes: [list.scope],
  });
  const limits = { plan: 'enterprise', perMinute: 1, perDay: 9 } as const;
  const { key: limited } = await service.keys.create({ name: 'limited', expiresAt: null, ...limits });
  const batch = `${RPC},createCounted?batch=1`;
  expect((await call(REST, { ...post(create.body), key: reader })).status).toBe(403);
  expect((await call(batch, { ...post({ 0: create.body, 1: create.body }), key: reader })).status).toBe(403);
  expect((await call(batch, { ...post({ 0: create.body, 1: create.body }), key: limited })).status).toBe(429);
  for (const path of [REST, RPC]) {
    const { status, headers } = await call(path, post(create.body, { prefer: 'error=internal_error' }));
    expect([status, headers.get('preference-applied')]).toEqual([500, 'error=internal_error']);
  }
  const rehearsed = await call('/mcp', toolCall('createCounted', create.body, { prefer: 'error=not_found' }));
  expect(rehearsed.body.result.structuredContent.code).toBe('not_found');
  expect(calls).toBe(0);
  expect((await send(REST, post(create.body))).status).toBe(201);
  expect(calls).toBe(1);
});
