import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  failConnection,
  type Intercept,
  loseResponse,
  respondAsProxy,
  respondWithError,
  truncateBody,
} from '../../../test/support/intercepted-fetch.js';
import { startService, type TestService } from '../../../test/support/test-service.js';
import { connectWith, failureOf } from './retrying-client.js';

let service: TestService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

const connect = (intercepts: Intercept[]) => connectWith(service, intercepts);

async function countPets(name: string): Promise<number> {
  const pets = await connect([]).client.listPets.query({ limit: 100 });
  return pets.filter((pet) => pet.name === name).length;
}

test('a create whose response was lost is retried and executed once', async () => {
  const { client, sent } = connect([loseResponse, truncateBody, respondAsProxy(502)]);
  const pet = await client.createPet.mutate({ name: 'Lost and found', categoryId: 1 });
  expect(pet).toMatchObject({ name: 'Lost and found' });
  expect(sent).toHaveLength(4);
  expect(await countPets('Lost and found')).toBe(1);
});

test('all attempts of a create have the same Idempotency-Key and bytes, whatever the caller changes', async () => {
  const newPet = { name: 'Steady', categoryId: 1 };
  const changeInput: Intercept = (send) => {
    newPet.name = 'Changed';
    return loseResponse(send, {});
  };
  const { client, sent } = connect([changeInput, failConnection]);
  expect(await client.createPet.mutate(newPet)).toMatchObject({ name: 'Steady' });
  expect(new Set(sent.map(({ body }) => body))).toEqual(new Set(['{"name":"Steady","categoryId":1}']));
  const keys = sent.map(({ headers }) => headers.get('idempotency-key'));
  expect(keys).toEqual(Array(3).fill(expect.stringMatching(/^[0-9a-f]{32}$/)));
  expect(new Set(keys).size).toBe(1);
});

test('a create generates a key if the given one is undefined or null', async () => {
  const { client, sent } = connect([]);
  for (const idempotencyKey of [undefined, null]) {
    await client.createPet.mutate({ name: 'Keyless', categoryId: 1 }, { context: { idempotencyKey } });
  }
  const keys = sent.map(({ headers }) => headers.get('idempotency-key'));
  expect(keys).toEqual(Array(2).fill(expect.stringMatching(/^[0-9a-f]{32}$/)));
});

test('simultaneous creates are sent separately, each with its own key', async () => {
  const { client, sent } = connect([]);
  await Promise.all([1, 2, 3].map((categoryId) => client.createPet.mutate({ name: 'Triplet', categoryId })));
  expect(new Set(sent.map(({ headers }) => headers.get('idempotency-key'))).size).toBe(3);
  expect(await countPets('Triplet')).toBe(3);
});

test("a create under the caller's key returns the same pet again", async () => {
  const { client, sent } = connect([]);
  const options = { context: { idempotencyKey: 'mine' } };
  const first = await client.createPet.mutate({ name: 'Mine', categoryId: 1 }, options);
  expect(await client.createPet.mutate({ name: 'Mine', categoryId: 1 }, options)).toEqual(first);
  const other = await failureOf(client.createPet.mutate({ name: 'Other', categoryId: 1 }, options));
  expect(other).toMatchObject({ code: 'idempotency_key_reused', status: 422 });
  expect(sent.map(({ headers }) => headers.get('idempotency-key'))).toEqual(['mine', 'mine', 'mine']);
});

test('a create waits for an earlier attempt that is still running', async () => {
  const { client, waits } = connect([respondWithError('idempotency_key_in_use')]);
  expect(await client.createPet.mutate({ name: 'Second', categoryId: 1 })).toMatchObject({ name: 'Second' });
  expect(waits).toEqual([250]);
});

/** Stands for an operation that is not idempotent; the client is a proxy, and calls whatever it is asked for. */
function mutateUnknown(client: object): Promise<unknown> {
  const { noSuchOperation } = client as { noSuchOperation: { mutate(): Promise<unknown> } };
  return noSuchOperation.mutate();
}

test.each([
  ['a lost response', failConnection, { message: 'The service could not be reached' }],
  ['a 500', respondWithError('internal_error'), { status: 500 }],
  ['a 503', respondWithError('service_unavailable', '1'), { status: 503 }],
])(
  'a mutation that is not idempotent is not repeated after %s: it may have been executed',
  async (_name, intercept, failure) => {
    const { client, sent } = connect([intercept]);
    expect(await failureOf(mutateUnknown(client))).toMatchObject(failure);
    expect(sent).toHaveLength(1);
    expect(sent[0]?.headers.has('idempotency-key')).toBe(false);
  },
);

test('a mutation that is not idempotent is repeated after a 429, which says that it was not executed', async () => {
  const { client, sent, waits } = connect([respondWithError('rate_limit_exceeded', '7')]);
  expect(await failureOf(mutateUnknown(client))).toMatchObject({ code: 'not_found' });
  expect([waits, sent.length]).toEqual([[7_000], 2]);
});
