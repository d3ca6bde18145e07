import { expect, test } from 'vitest';
import {
  failConnection,
  type Intercept,
  loseResponse,
  respondAsProxy,
  respondWithError,
  truncateBody,
} from '../../../test/support/intercepted-fetch.js';
import { create, list, newItem, TEXT } from '../../../test/support/operations-under-test.js';
import { useService } from '../../platform/test/support/test-service.js';
import { connectWith, failureOf } from './retrying-client.js';

const { service } = useService();

const connect = (intercepts: Intercept[]) => connectWith(service, intercepts);

async function countItems(name: string): Promise<number> {
  const items = await connect([]).client[list.name].query({ limit: 100 });
  return items.filter((item) => item[TEXT] === name).length;
}

test('a create whose response was lost is retried and executed once', async () => {
  const { client, sent } = connect([loseResponse, truncateBody, respondAsProxy(502)]);
  const item = await client[create.name].mutate(newItem('Lost and found'));
  expect(item).toMatchObject({ [TEXT]: 'Lost and found' });
  expect(sent).toHaveLength(4);
  expect(await countItems('Lost and found')).toBe(1);
});

test('all attempts of a create have the same Idempotency-Key and bytes, whatever the caller changes', async () => {
  const changing = newItem('Steady');
  const changeInput: Intercept = (send) => {
    changing[TEXT] = 'Changed';
    return loseResponse(send, {});
  };
  const { client, sent } = connect([changeInput, failConnection]);
  expect(await client[create.name].mutate(changing)).toMatchObject({ [TEXT]: 'Steady' });
  expect(new Set(sent.map(({ body }) => body))).toEqual(new Set([JSON.stringify(newItem('Steady'))]));
  const keys = sent.map(({ headers }) => headers.get('idempotency-key'));
  expect(keys).toEqual(Array(3).fill(expect.stringMatching(/^[0-9a-f]{32}$/)));
  expect(new Set(keys).size).toBe(1);
});

test('a create generates a key if the given one is undefined or null', async () => {
  const { client, sent } = connect([]);
  for (const idempotencyKey of [undefined, null]) {
    await client[create.name].mutate(newItem('Keyless'), { context: { idempotencyKey } });
  }
  const keys = sent.map(({ headers }) => headers.get('idempotency-key'));
  expect(keys).toEqual(Array(2).fill(expect.stringMatching(/^[0-9a-f]{32}$/)));
});

test('simultaneous creates are sent separately, each with its own key', async () => {
  const { client, sent } = connect([]);
  await Promise.all([1, 2, 3].map((n) => client[create.name].mutate(newItem('Triplet', n))));
  expect(new Set(sent.map(({ headers }) => headers.get('idempotency-key'))).size).toBe(3);
  expect(await countItems('Triplet')).toBe(3);
});

test("a create under the caller's key returns the same item again", async () => {
  const { client, sent } = connect([]);
  const options = { context: { idempotencyKey: 'mine' } };
  const first = await client[create.name].mutate(newItem('Mine'), options);
  expect(await client[create.name].mutate(newItem('Mine'), options)).toEqual(first);
  const other = await failureOf(client[create.name].mutate(newItem('Other'), options));
  expect(other).toMatchObject({ code: 'idempotency_key_reused', status: 422 });
  expect(sent.map(({ headers }) => headers.get('idempotency-key'))).toEqual(['mine', 'mine', 'mine']);
});

test('a create waits for an earlier attempt that is still running', async () => {
  const { client, waits } = connect([respondWithError('idempotency_key_in_use')]);
  expect(await client[create.name].mutate(newItem('Second'))).toMatchObject({ [TEXT]: 'Second' });
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
