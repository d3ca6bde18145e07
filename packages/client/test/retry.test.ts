import { inspect } from 'node:util';
import { type ClientOptions, createClient, isApiError } from '@animal-store/client';
import { beforeAll, expect, test, vi } from 'vitest';
import {
  createFakeClock,
  failConnection,
  type Intercept,
  interceptFetch,
  neverRespond,
  respondAsProxy,
  respondWithError,
  truncateBody,
} from '../../../test/support/intercepted-fetch.js';
import { create, list, newItem, read, TEXT } from '../../../test/support/operations-under-test.js';
import { useService } from '../../platform/test/support/test-service.js';
import { connectWith, failureOf } from './retrying-client.js';

let itemId: number;

const { service } = useService();

beforeAll(async () => {
  ({ id: itemId } = await connect([]).client[create.name].mutate(newItem('Rex')));
});

const connect = (intercepts: Intercept[], options?: Partial<ClientOptions>) =>
  connectWith(service, intercepts, options);

function createDeferred() {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

test.each([
  ['429', respondWithError('rate_limit_exceeded', '7')],
  ['503', respondWithError('service_unavailable', '7')],
  ['503 from a proxy', respondAsProxy(503, { 'retry-after': '7' })],
  ['503 with a date', respondAsProxy(503, { 'retry-after': new Date(1_800_000_007_000).toUTCString() })],
])('after a %s a call waits for exactly Retry-After', async (_name, intercept) => {
  const { client, sent, waits } = connect([intercept]);
  expect(await client[read.name].query(read.inputOf(itemId))).toMatchObject({ [TEXT]: 'Rex' });
  expect(waits).toEqual([7_000]);
  expect(sent).toHaveLength(2);
});

test.each([
  ['a failed connection', failConnection],
  ['a truncated response', truncateBody],
  ['a 500', respondWithError('internal_error')],
  ['a 502 from a proxy', respondAsProxy(502)],
  ['a 504 from a proxy', respondAsProxy(504)],
  ['a 503 without Retry-After', respondAsProxy(503)],
])(
  'after %s a call backs off exponentially with full jitter, and gives up after four attempts',
  async (_name, intercept) => {
    const recovered = connect([intercept, intercept, intercept]);
    expect(await recovered.client[read.name].query(read.inputOf(itemId))).toMatchObject({ [TEXT]: 'Rex' });
    expect(recovered.waits).toEqual([250, 500, 1_000]);
    const lost = connect([intercept, intercept, intercept, intercept]);
    await failureOf(lost.client[read.name].query(read.inputOf(itemId)));
    expect(lost.sent).toHaveLength(4);
  },
);

test('a back-off lasts between zero and eight seconds', async () => {
  const intercepts = Array.from({ length: 9 }, () => failConnection);
  const retry = { attempts: 10, totalSeconds: 600 };
  const { clock, waits } = createFakeClock();
  const longest = connect(intercepts, { retry, clock: { ...clock, random: () => 1 - Number.EPSILON } });
  await longest.client[read.name].query(read.inputOf(itemId));
  expect(waits.map(Math.ceil)).toEqual([500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000, 8_000, 8_000]);
  const shortest = createFakeClock();
  await connect(intercepts, { retry, clock: { ...shortest.clock, random: () => 0 } }).client[read.name].query(
    read.inputOf(itemId),
  );
  expect(new Set(shortest.waits)).toEqual(new Set([0]));
});

test.each([
  ['invalid_request', respondWithError('invalid_request')],
  ['invalid_api_key', respondWithError('invalid_api_key')],
  ['not_found', respondWithError('not_found')],
  ['operation_removed', respondWithError('operation_removed')],
  ['payload_too_large', respondWithError('payload_too_large')],
  ['idempotency_key_reused', respondWithError('idempotency_key_reused')],
  ['a 404 from a proxy', respondAsProxy(404)],
  ['an HTML page with status 200', respondAsProxy(200)],
])('permanent errors are not retried: %s', async (_name, intercept) => {
  const { client, sent, waits } = connect([intercept]);
  await failureOf(client[create.name].mutate(newItem('Once')));
  expect(sent).toHaveLength(1);
  expect(waits).toEqual([]);
});

test.each([
  ['a character beyond Latin-1', 'as_test_’secret'],
  ['a line break within', 'as_test_\nsecret'],
])('a key that no header can carry is neither sent nor repeated in the error: %s', async (_name, apiKey) => {
  const { client, sent, waits } = connect([], { apiKey });
  const failure = await failureOf(client[list.name].query());
  expect(failure.cause).toBeInstanceOf(TypeError);
  expect(inspect(failure)).not.toContain('secret');
  expect([sent, waits]).toEqual([[], []]);
});

test('only the failed calls of a batch are retried, and the others return in the meantime', async () => {
  const failSecond: Intercept = async (send, init) => {
    const results = (await (await send()).json()) as unknown[];
    const denial = await respondWithError('service_unavailable')(send, init);
    const headers = { 'retry-after': '1' };
    return Response.json([results[0], await denial.json(), results[2]], { status: 207, headers });
  };
  const waitEnded = createDeferred();
  const waits: number[] = [];
  const sleep = (milliseconds: number) => {
    waits.push(milliseconds);
    return waitEnded.promise;
  };
  const { client, sent } = connect([failSecond], { clock: { sleep } });
  const calls = [itemId, itemId, 0].map((id) => client[read.name].query(read.inputOf(id)));
  const missing = await failureOf(calls[2] as Promise<unknown>);
  expect(missing).toMatchObject({ code: 'not_found', retryAfterSeconds: undefined });
  expect(await calls[0]).toMatchObject({ id: itemId });
  expect(waits).toEqual([1_000]);
  waitEnded.resolve();
  expect(await calls[1]).toMatchObject({ id: itemId });
  expect(sent.map(({ url }) => new URL(url).pathname)).toEqual([
    `${read.trpc},${read.name},${read.name}`,
    read.trpc,
  ]);
});

test('a wait beyond the total time is not started: the call fails at once and says when to retry', async () => {
  const banned = connect([respondWithError('api_key_banned', '300')]);
  const failure = await failureOf(banned.client[list.name].query());
  expect(failure).toMatchObject({ code: 'api_key_banned', status: 429, retryAfterSeconds: 300 });
  expect([banned.sent.length, banned.waits]).toEqual([1, []]);
  const slow = connect(Array(9).fill(respondWithError('service_unavailable', '12')), {
    retry: { attempts: 9 },
  });
  await failureOf(slow.client[list.name].query());
  expect(slow.waits).toEqual([12_000, 12_000]);
});

test('a call without a response fails after the total time', async () => {
  const { client } = connect([neverRespond], { retry: { totalSeconds: 0.05 } });
  const failure = await failureOf(client[list.name].query());
  expect(failure.cause).toMatchObject({ name: 'TimeoutError' });
  expect(isApiError(failure)).toBe(false);
});

test('retry options that are undefined have their defaults', async () => {
  const retry = { attempts: undefined, totalSeconds: undefined } as object;
  const { client, sent } = connect(Array(9).fill(failConnection), { retry });
  expect((await failureOf(client[list.name].query())).cause).toMatchObject({ name: 'NetworkError' });
  expect(sent).toHaveLength(4);
});

test('with one attempt nothing is retried', async () => {
  const { client, sent } = connect([failConnection], { retry: { attempts: 1 } });
  await failureOf(client[list.name].query());
  expect(sent).toHaveLength(1);
});

test('an abort ends a wait immediately', async () => {
  const timers = vi.spyOn(globalThis, 'setTimeout');
  const retry = { totalSeconds: 7_200 };
  const { fetch, sent } = interceptFetch(respondWithError('rate_limit_exceeded', '3600'));
  const client = createClient({ baseUrl: service.url, apiKey: service.key, fetch, retry });
  const controller = new AbortController();
  const failure = failureOf(client[list.name].query(undefined, { signal: controller.signal }));
  await expect.poll(() => timers.mock.calls).toContainEqual([expect.any(Function), 3_600_000]);
  timers.mockRestore();
  controller.abort();
  expect((await failure).cause).toMatchObject({ name: 'AbortError' });
  expect(sent).toHaveLength(1);
});

test('an abort ends one call of a batch immediately, and the others continue', async () => {
  const release = createDeferred();
  const { client, sent } = connect([(send) => release.promise.then(send)]);
  const controller = new AbortController();
  const aborted = failureOf(client[list.name].query(undefined, { signal: controller.signal }));
  const other = client[read.name].query(read.inputOf(itemId));
  await expect.poll(() => sent.length).toBe(1);
  controller.abort();
  expect((await aborted).cause).toMatchObject({ name: 'AbortError' });
  release.resolve();
  expect(await other).toMatchObject({ id: itemId });
});

test('a call whose signal is already aborted is not sent', async () => {
  const { client, sent } = connect([]);
  await failureOf(client[list.name].query(undefined, { signal: AbortSignal.abort() }));
  expect(sent).toEqual([]);
});
