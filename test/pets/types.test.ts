import createClient from 'openapi-fetch';
import { expect, expectTypeOf, test } from 'vitest';
import type { z } from 'zod';
import type { order } from '../../src/orders/schema.js';
import type { newPet, pet } from '../../src/pets/schema.js';
import type { components, paths } from '../support/openapi-types.js';
import { useService } from '../support/service.js';

type Schemas = components['schemas'];
/** In zod an optional member may also be undefined, which JSON does not have. */
type Present<T> = { [Name in keyof T]-?: Exclude<T[Name], undefined> };

const { service } = useService();

test('the types that third parties generate match those of the service', () => {
  expectTypeOf<Schemas['Pet']>().toEqualTypeOf<z.output<typeof pet>>();
  expectTypeOf<Schemas['Order']>().toEqualTypeOf<z.output<typeof order>>();
  expectTypeOf<Present<Schemas['NewPet']>>().toEqualTypeOf<Present<z.input<typeof newPet>>>();
  expectTypeOf<{ name: string; categoryId: number }>().toExtend<Schemas['NewPet']>();
  expectTypeOf<Schemas['NewPet']>().toExtend<z.input<typeof newPet>>();
});

test('a client generated from the document creates pets and follows pages', async () => {
  const client = createClient<paths>({
    baseUrl: `${service.url}/v1`,
    headers: { authorization: `Bearer ${service.key}` },
  });
  const created: number[] = [];
  for (const name of ['Rex', 'Tom', 'Kim', 'Ada', 'Bo']) {
    const { data } = await client.POST('/pets', { body: { name, categoryId: 1, status: 'pending' } });
    if (data !== undefined) created.push(data.id);
  }
  const listed: number[] = [];
  let cursor: string | null | undefined;
  do {
    const query = { limit: 2, status: 'pending', ...(cursor ? { cursor: Number(cursor) } : {}) } as const;
    const page = await client.GET('/pets', { params: { query } });
    listed.push(...(page.data ?? []).map(({ id }) => id));
    const next = /^<(.+)>; rel="next"$/.exec(page.response.headers.get('link') ?? '')?.[1];
    cursor = next === undefined ? undefined : new URL(next).searchParams.get('cursor');
  } while (cursor);
  expect(created).toHaveLength(5);
  expect(listed).toEqual(created);

  const { error } = await client.POST('/pets', { body: { name: '', categoryId: 1 } });
  expect(error?.code).toBe('invalid_request');
});
