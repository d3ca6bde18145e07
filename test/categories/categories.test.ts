import { post, rpcPath, toolCall } from '@animal-store/platform/testing';
import { expect, test } from 'vitest';
import { useService } from '../support/service.js';

const { service, call } = useService();

const put = (id: unknown, name: unknown) =>
  call(`/v1/categories/${id}`, { ...post({ name }), method: 'PUT' });
const useTool = async (name: string, input: object) =>
  (await call('/mcp', toolCall(name, input))).body.result;

test('a category is named, named again and renamed, over each protocol, and its number is never changed', async () => {
  const birds = { id: 3, name: 'Birds' };
  for (let times = 0; times < 2; times += 1)
    expect(await put(3, 'Birds')).toMatchObject({ status: 200, body: birds });
  const trpc = await call('/trpc/nameCategory', post({ categoryId: 3, name: 'Songbirds' }));
  expect(trpc.body.result.data).toEqual({ ...birds, name: 'Songbirds' });
  const tool = await useTool('nameCategory', { categoryId: 3, name: 'Birds' });
  expect(tool.structuredContent).toEqual(birds);
  expect((await call('/v1/categories')).body).toEqual([birds]);
});

test('only categories that have a name are listed, with those of animals by their number', async () => {
  await put(7, 'Horses');
  await service.items.create({ name: 'Rex', categoryId: 12 });
  const ids = (await call('/v1/categories?order=newest')).body.map(({ id }: { id: number }) => id);
  expect(ids).toEqual([7, 3]);
  const page = await call('/v1/categories?limit=1');
  expect(page.headers.get('link')).toContain('cursor=3');
  expect((await call(rpcPath('listCategories', { cursor: 3 }))).body.result.data).toEqual([
    { id: 7, name: 'Horses' },
  ]);
});

test('what cannot be the number of a category is a 404 over REST, and a 400 where it is a member', async () => {
  for (const id of [0, -1, 2 ** 53, 'x', '1.5'])
    expect([id, (await put(id, 'None')).status]).toEqual([id, 404]);
  for (const categoryId of [0, -1, 2 ** 53, '3']) {
    expect((await call('/trpc/nameCategory', post({ categoryId, name: 'None' }))).status).toBe(400);
    expect((await useTool('nameCategory', { categoryId, name: 'None' })).isError).toBe(true);
  }
  expect((await put(2 ** 53 - 1, 'The last')).status).toBe(200);
});

test('a name is as that of an animal: 1 to 200 characters, kept as sent', async () => {
  expect((await put(9, ' Big 🐈 ')).body.name).toBe(' Big 🐈 ');
  for (const name of ['', ' \u2003', '\0', '\ud83d', 'x'.repeat(201), 1, null])
    expect([name, (await put(9, name)).status]).toEqual([name, 400]);
});

test('of many names for a category at the same time, every one succeeds and one is the last', async () => {
  const names = Array.from({ length: 20 }, (_, n) => `Name ${n}`);
  const answers = await Promise.all(names.map((name) => put(20, name)));
  expect(answers.map(({ body }) => body.name)).toEqual(names);
  const [row] = (await call('/v1/categories?cursor=19&limit=1')).body;
  expect(names).toContain(row.name);
});

test('to name a category takes the right to change animals', async () => {
  const limits = { plan: 'enterprise', perMinute: 100, perDay: 100 } as const;
  const { key } = await service.keys.create({ name: 'reader', ...limits, scopes: ['pets:read'] });
  expect((await call('/v1/categories', { key })).status).toBe(200);
  expect((await call('/v1/categories/1', { ...post({ name: 'x' }), method: 'PUT', key })).status).toBe(403);
});
