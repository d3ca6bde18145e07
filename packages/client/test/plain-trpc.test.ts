import type { AppRouter } from '@animal-store/client';
import {
  createTRPCClient,
  httpBatchLink,
  httpBatchStreamLink,
  httpLink,
  TRPCClientError,
} from '@trpc/client';
import { describe, expect, expectTypeOf, test } from 'vitest';
import type { z } from 'zod';
import {
  create,
  type itemSchema,
  list,
  type NUMBER,
  newItem,
  read,
  type TEXT,
} from '../../../test/support/operations-under-test.js';
import { expectErrorBody } from '../../platform/test/support/expect-error-body.js';
import { useService } from '../../platform/test/support/test-service.js';

const { service } = useService();

const links = { httpLink, httpBatchLink, httpBatchStreamLink };

function connect(link: keyof typeof links, key = service.key) {
  const options = { url: `${service.url}/trpc`, headers: { authorization: `Bearer ${key}` } };
  return createTRPCClient<AppRouter>({ links: [links[link](options)] });
}

describe.each(Object.keys(links) as (keyof typeof links)[])("tRPC's own client with %s", (link) => {
  test('creates, lists and gets items', async () => {
    const client = connect(link);
    const created = await client[create.name].mutate(newItem('Rex'));
    expectTypeOf(created).toEqualTypeOf<z.output<typeof itemSchema>>();
    const [listed, found] = await Promise.all([
      client[list.name].query({ limit: 100, cursor: created.id - 1 }),
      client[read.name].query(read.inputOf(created.id)),
    ]);
    expect(listed).toEqual([created]);
    expect(found).toEqual(created);
    expect(await client[list.name].query()).toContainEqual(created);
  });

  test('finds the Error object in data.error', async () => {
    const missing = await connect(link)
      [read.name].query(read.inputOf(999_999_999))
      .catch((error: unknown) => error);
    expect(missing).toBeInstanceOf(TRPCClientError);
    const { data, message } = missing as TRPCClientError<AppRouter>;
    expectErrorBody(data?.error, 'not_found', message);
    const unauthorized = await connect(link, 'nonsense')
      [list.name].query()
      .catch((error: unknown) => error);
    expect((unauthorized as TRPCClientError<AppRouter>).data?.error.code).toBe('invalid_api_key');
  });
});

test('a wrong input is a compile error', () => {
  type Input = Parameters<ReturnType<typeof connect>[typeof create.name]['mutate']>[0];
  type New = ReturnType<typeof newItem>;
  type With<Member extends string> = Omit<New, Member> & Record<Member, symbol>;
  expectTypeOf<New>().toMatchTypeOf<Input>();
  expectTypeOf<With<typeof NUMBER>>().not.toMatchTypeOf<Input>();
  expectTypeOf<With<typeof list.filterName>>().not.toMatchTypeOf<Input>();
  expectTypeOf<Omit<New, typeof TEXT>>().not.toMatchTypeOf<Input>();
});
