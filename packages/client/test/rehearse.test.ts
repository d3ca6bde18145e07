import { ApiClientError, type ErrorCode, isApiError } from '@animal-store/client';
import { describe, expect, test } from 'vitest';
import { create, list, newItem, otherList, read } from '../../../test/support/operations-under-test.js';
import { errorOf, errorTable } from '../../platform/test/support/error-table.js';
import { useService } from '../../platform/test/support/test-service.js';
import { connectWith, failureOf } from './retrying-client.js';

/** Those that tRPC responds with */
const CODES = (Object.keys(errorTable) as ErrorCode[]).filter((code) => !('protocol' in errorOf(code)));
const RETRIED = ['internal_error', 'service_unavailable', 'rate_limit_exceeded', 'api_key_banned'] as const;
const NEW_ITEM = newItem('Miso');

const { service } = useService();

const connect = (rehearse: ErrorCode | (() => ErrorCode | undefined), attempts = 1) =>
  connectWith(service, [], { rehearse, retry: { attempts, totalSeconds: 1_000_000 } });

describe.each(CODES)('a rehearsed %s', (code) => {
  test('rejects queries, creates and every call of a batch as the real error does', async () => {
    const { client, sent } = connect(code);
    const calls = [
      client[list.name].query(),
      client[otherList.name].query(otherList.input),
      client.getKey.query(),
      client[create.name].mutate(NEW_ITEM),
    ];
    for (const failure of await Promise.all(calls.map(failureOf))) {
      expect(failure).toBeInstanceOf(ApiClientError);
      expect(failure).toMatchObject({ code, status: errorOf(code).status, message: expect.any(String) });
      const { requestId, retryAfterSeconds } = failure as ApiClientError;
      expect(requestId).toBeDefined();
      const { status } = errorOf(code);
      if (status === 429 || status === 503) expect(retryAfterSeconds).toBeGreaterThan(0);
      else expect(retryAfterSeconds).toBeUndefined();
    }
    expect(sent.map(({ url }) => new URL(url).pathname)).toEqual([
      create.trpc,
      `${list.trpc},${otherList.name},getKey`,
    ]);
  });
});

test('a rehearsed insufficient_scope names the scope of each call', async () => {
  const { client } = connect('insufficient_scope');
  const failures = await Promise.all(
    [
      client[list.name].query(),
      client[otherList.name].query(otherList.input),
      client[create.name].mutate(NEW_ITEM),
    ].map(failureOf),
  );
  const scopes = failures.map((failure) => isApiError(failure) && failure.scope);
  expect(scopes).toEqual([list.scope, otherList.scope, create.scope]);
});

test.each(RETRIED)('%s is retried as if it were real, and every attempt rehearses it', async (code) => {
  const { client, sent, waits } = connect(code, 3);
  const failure = (await failureOf(client[list.name].query())) as ApiClientError;
  expect(failure.code).toBe(code);
  expect(sent.map(({ headers }) => headers.get('prefer'))).toEqual(Array(3).fill(`error=${code}`));
  expect(waits).toHaveLength(2);
  // The wait of the real error: what Retry-After says.
  const { retryAfterSeconds } = failure;
  if (retryAfterSeconds !== undefined) expect(waits[1]).toBeGreaterThanOrEqual(retryAfterSeconds * 1_000);
});

test('what is not retried in earnest is not retried in a rehearsal', async () => {
  const { client, sent, waits } = connect('not_found', 3);
  await failureOf(client[read.name].query(read.inputOf(1)));
  expect(sent).toHaveLength(1);
  expect(waits).toEqual([]);
});

test('a function decides before each request, so that a call can fail first and succeed when retried', async () => {
  const codes: (ErrorCode | undefined)[] = ['service_unavailable', undefined];
  const { client, sent } = connect(() => codes.shift(), 2);
  const before = await connectWith(service, []).client[list.name].query({ limit: 100 });
  const item = await client[create.name].mutate(NEW_ITEM);
  expect(sent.map(({ headers }) => headers.get('prefer'))).toEqual(['error=service_unavailable', null]);
  const [first, second] = sent.map(({ headers }) => headers.get('idempotency-key'));
  expect(first).toBe(second);
  // The rehearsed attempt created nothing, the second one did.
  expect(await client[list.name].query({ limit: 100 })).toEqual([...before, item]);
});

test('a client that rehearses nothing sends no Prefer header', async () => {
  const { client, sent } = connectWith(service, []);
  await client[list.name].query();
  expect(sent.map(({ headers }) => headers.has('prefer'))).toEqual([false]);
});
