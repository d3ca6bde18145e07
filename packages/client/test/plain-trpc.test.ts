import {
  createTRPCClient,
  httpBatchLink,
  httpBatchStreamLink,
  httpLink,
  TRPCClientError,
} from '@trpc/client';
import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from 'vitest';
import type { z } from 'zod';
import type { pet } from '../../../src/pets/schema.js';
import { startService, type TestService } from '../../../test/support/test-service.js';
import type { AppRouter } from '../src/create-client.js';

let service: TestService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

const links = { httpLink, httpBatchLink, httpBatchStreamLink };

function connect(link: keyof typeof links, key = service.key) {
  const options = { url: `${service.url}/trpc`, headers: { authorization: `Bearer ${key}` } };
  return createTRPCClient<AppRouter>({ links: [links[link](options)] });
}

describe.each(Object.keys(links) as (keyof typeof links)[])("tRPC's own client with %s", (link) => {
  test('creates, lists and gets pets', async () => {
    const client = connect(link);
    const created = await client.createPet.mutate({ name: 'Rex', categoryId: 1 });
    expectTypeOf(created).toEqualTypeOf<z.output<typeof pet>>();
    const [listed, found] = await Promise.all([
      client.listPets.query({ limit: 100, cursor: created.id - 1 }),
      client.getPet.query({ petId: created.id }),
    ]);
    expect(listed).toEqual([created]);
    expect(found).toEqual(created);
    expect(await client.listPets.query()).toContainEqual(created);
  });

  test('finds the Error object in data.error', async () => {
    const missing = await connect(link)
      .getPet.query({ petId: 999_999_999 })
      .catch((error: unknown) => error);
    expect(missing).toBeInstanceOf(TRPCClientError);
    const { data, message } = missing as TRPCClientError<AppRouter>;
    expect(data?.error).toEqual({ code: 'not_found', message, status: 404 });
    const unauthorized = await connect(link, 'nonsense')
      .listPets.query()
      .catch((error: unknown) => error);
    expect((unauthorized as TRPCClientError<AppRouter>).data?.error.code).toBe('invalid_api_key');
  });
});

test('a wrong input is a compile error', () => {
  type Input = Parameters<ReturnType<typeof connect>['createPet']['mutate']>[0];
  expectTypeOf<{ name: string; categoryId: number }>().toMatchTypeOf<Input>();
  expectTypeOf<{ name: string; categoryId: string }>().not.toMatchTypeOf<Input>();
  expectTypeOf<{ name: string; categoryId: number; status: 'lost' }>().not.toMatchTypeOf<Input>();
  expectTypeOf<{ name: string }>().not.toMatchTypeOf<Input>();
});
