import { createCaller, post } from '@animal-store/platform/testing';
import { expect, test } from 'vitest';
import { connectClient, MODE_NAMES } from '../packages/platform/test/support/mcp.js';
import { useService } from './support/service.js';

const { service } = useService();

/** What the tools of the task return, as far as it is read here */
interface Content {
  readonly id?: number;
  readonly items?: readonly object[];
  readonly limits?: readonly { readonly remaining: number }[];
}

test.each(MODE_NAMES)(
  'a client of %s finds the number of birds and an available one, reserves it, cancels, and learns what is left of its limit',
  async (mode) => {
    const call = createCaller(service);
    const categoryId = 10 + MODE_NAMES.indexOf(mode);
    const name = `Birds of ${mode}`;
    await call(`/v1/categories/${categoryId}`, { ...post({ name }), method: 'PUT' });
    await call('/v1/pets', post({ name: 'Sold', categoryId, status: 'sold' }));
    await call('/v1/pets', post({ name: 'Other', categoryId: 4 }));
    const { body: wanted } = await call('/v1/pets', post({ name: 'Wanted', categoryId }));
    const scopes = ['pets:read', 'orders:write'] as const;
    const { key } = await service.keys.create({ name: 'clerk', plan: 'free', scopes, expiresAt: null });
    const client = await connectClient({ url: service.url, key }, mode);
    const use = async (name: string, args: Record<string, unknown>) => {
      const { isError, structuredContent } = await client.callTool({ name, arguments: args });
      return { isError, structuredContent: structuredContent as Content };
    };

    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      ...['listPets', 'createOrder', 'updateOrder', 'listCategories', 'getKey'],
    ]);
    const { items = [] } = (await use('listCategories', {})).structuredContent;
    expect(items).toContainEqual({ id: categoryId, name });
    const found = await use('listPets', { categoryId, status: 'available' });
    expect(found.structuredContent.items).toEqual([wanted]);
    const order = { petId: wanted.id, idempotencyKey: 'reserve-it' };
    const placed = await use('createOrder', order);
    expect(placed.structuredContent).toMatchObject({ petId: wanted.id, status: 'placed' });
    expect((await use('createOrder', order)).structuredContent).toEqual(placed.structuredContent);
    const { limits } = (await use('getKey', {})).structuredContent;
    expect(limits).toMatchObject([
      { window: 'minute', limit: 60 },
      { window: 'day', limit: 1000 },
    ]);
    expect(limits?.[0]?.remaining).toBeLessThan(60);

    const late = await use('createOrder', { petId: wanted.id });
    expect(late).toMatchObject({
      isError: true,
      structuredContent: { code: 'pet_not_available', status: 409 },
    });
    const listAvailable = async () =>
      (await use('listPets', { categoryId, status: 'available' })).structuredContent.items;
    expect(await listAvailable()).toEqual([]);
    const cancelled = await use('updateOrder', { orderId: placed.structuredContent.id, status: 'cancelled' });
    expect(cancelled.structuredContent).toEqual({ ...placed.structuredContent, status: 'cancelled' });
    expect(await listAvailable()).toEqual([wanted]);
  },
);
