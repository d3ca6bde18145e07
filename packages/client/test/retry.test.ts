import { inspect } from 'node:util';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import {
  breakOff,
  type Fault,
  fakeClock,
  hang,
  interpose,
  loseAnswer,
  misroute,
  refuse,
  reset,
} from '../../../test/support/interposed-fetch.js';
import { startService, type TestService } from '../../../test/support/test-service.js';
import { type ClientOptions, createClient, isApiError } from '../src/client.js';

let service: TestService;
let petId: number;

beforeAll(async () => {
  service = await startService();
  ({ id: petId } = await connect([]).client.createPet.mutate({ name: 'Rex', categoryId: 1 }));
});
afterAll(() => service.close());

/** A client whose first exchanges fail as given, what it has sent, and how long it has waited. */
function connect(faults: Fault[], options: Partial<ClientOptions> = {}) {
  const { fetch, sent } = interpose(...faults);
  const { clock, waits } = fakeClock();
  const client = createClient({ baseUrl: service.url, apiKey: service.key, fetch, clock, ...options });
  return { client, sent, waits };
}

/** A promise that resolves when told. */
function defer() {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => expect.unreachable('the call has succeeded'),
    (error: unknown) => error as Error,
  );

async function countPets(name: string): Promise<number> {
  const pets = await connect([]).client.listPets.query({ limit: 100 });
  return pets.filter((pet) => pet.name === name).length;
}

test.each([
  ['429', refuse('rate_limit_exceeded', '7')],
  ['503', refuse('service_unavailable', '7')],
  ['503 of a proxy', misroute(503, { 'retry-after': '7' })],
  ['503 with a date', misroute(503, { 'retry-after': new Date(1_800_000_007_000).toUTCString() })],
])('after a %s a call waits exactly Retry-After', async (_name, fault) => {
  const { client, sent, waits } = connect([fault]);
  expect(await client.getPet.query({ petId })).toMatchObject({ name: 'Rex' });
  expect(waits).toEqual([7_000]);
  expect(sent).toHaveLength(2);
});

test.each([
  ['a connection that is reset', reset],
  ['an answer that breaks off', breakOff],
  ['a 500', refuse('internal_error')],
  ['a 502 of a proxy', misroute(502)],
  ['a 504 of a proxy', misroute(504)],
  ['a 503 without Retry-After', misroute(503)],
])(
  'after %s a call backs off exponentially with full jitter, and gives up after four attempts',
  async (_name, fault) => {
    const recovered = connect([fault, fault, fault]);
    expect(await recovered.client.getPet.query({ petId })).toMatchObject({ name: 'Rex' });
    expect(recovered.waits).toEqual([250, 500, 1_000]);
    const lost = connect([fault, fault, fault, fault]);
    await failureOf(lost.client.getPet.query({ petId }));
    expect(lost.sent).toHaveLength(4);
  },
);

test('a back-off is at most eight seconds, and nothing at the least', async () => {
  const faults = Array.from({ length: 9 }, () => reset);
  const retry = { attempts: 10, totalSeconds: 600 };
  const { clock, waits } = fakeClock();
  const longest = connect(faults, { retry, clock: { ...clock, random: () => 1 - Number.EPSILON } });
  await longest.client.getPet.query({ petId });
  expect(waits.map(Math.ceil)).toEqual([500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000, 8_000, 8_000]);
  const shortest = fakeClock();
  await connect(faults, { retry, clock: { ...shortest.clock, random: () => 0 } }).client.getPet.query({
    petId,
  });
  expect(new Set(shortest.waits)).toEqual(new Set([0]));
});

test.each([
  ['invalid_request', refuse('invalid_request')],
  ['invalid_api_key', refuse('invalid_api_key')],
  ['not_found', refuse('not_found')],
  ['operation_removed', refuse('operation_removed')],
  ['payload_too_large', refuse('payload_too_large')],
  ['idempotency_key_reused', refuse('idempotency_key_reused')],
  ['a 404 of a proxy', misroute(404)],
  ['a page in place of an answer', misroute(200)],
])('what cannot pass by itself is sent once: %s', async (_name, fault) => {
  const { client, sent, waits } = connect([fault]);
  await failureOf(client.createPet.mutate({ name: 'Once', categoryId: 1 }));
  expect(sent).toHaveLength(1);
  expect(waits).toEqual([]);
});

test.each([
  ['a character beyond Latin-1', 'as_test_’secret'],
  ['a line break within', 'as_test_\nsecret'],
])('a key that no header can carry is neither sent nor told in the error: %s', async (_name, apiKey) => {
  const { client, sent, waits } = connect([], { apiKey });
  const failure = await failureOf(client.listPets.query());
  expect(failure.cause).toBeInstanceOf(TypeError);
  expect(inspect(failure)).not.toContain('secret');
  expect([sent, waits]).toEqual([[], []]);
});

test('a create whose answer was lost is repeated and executed once', async () => {
  const { client, sent } = connect([loseAnswer, breakOff, misroute(502)]);
  const pet = await client.createPet.mutate({ name: 'Lost and found', categoryId: 1 });
  expect(pet).toMatchObject({ name: 'Lost and found' });
  expect(sent).toHaveLength(4);
  expect(await countPets('Lost and found')).toBe(1);
});

test('every attempt of a create has the same Idempotency-Key and the same bytes, whatever the caller changes', async () => {
  const newPet = { name: 'Steady', categoryId: 1 };
  const change: Fault = (send) => {
    newPet.name = 'Changed';
    return loseAnswer(send, {});
  };
  const { client, sent } = connect([change, reset]);
  expect(await client.createPet.mutate(newPet)).toMatchObject({ name: 'Steady' });
  expect(new Set(sent.map(({ body }) => body))).toEqual(new Set(['{"name":"Steady","categoryId":1}']));
  const keys = sent.map(({ headers }) => headers.get('idempotency-key'));
  expect(keys).toEqual(Array(3).fill(expect.stringMatching(/^[0-9a-f]{32}$/)));
  expect(new Set(keys).size).toBe(1);
});

test('a create has a key of its own also when the one that is given is no key', async () => {
  const { client, sent } = connect([]);
  for (const idempotencyKey of [undefined, null]) {
    await client.createPet.mutate({ name: 'Keyless', categoryId: 1 }, { context: { idempotencyKey } });
  }
  const keys = sent.map(({ headers }) => headers.get('idempotency-key'));
  expect(keys).toEqual(Array(2).fill(expect.stringMatching(/^[0-9a-f]{32}$/)));
});

test('creates that are asked for together are sent each with a key of its own', async () => {
  const { client, sent } = connect([]);
  await Promise.all([1, 2, 3].map((categoryId) => client.createPet.mutate({ name: 'Triplet', categoryId })));
  expect(new Set(sent.map(({ headers }) => headers.get('idempotency-key'))).size).toBe(3);
  expect(await countPets('Triplet')).toBe(3);
});

test("a create under the caller's own key answers what the first one answered", async () => {
  const { client, sent } = connect([]);
  const options = { context: { idempotencyKey: 'mine' } };
  const first = await client.createPet.mutate({ name: 'Mine', categoryId: 1 }, options);
  expect(await client.createPet.mutate({ name: 'Mine', categoryId: 1 }, options)).toEqual(first);
  const other = await failureOf(client.createPet.mutate({ name: 'Other', categoryId: 1 }, options));
  expect(other).toMatchObject({ code: 'idempotency_key_reused', status: 422 });
  expect(sent.map(({ headers }) => headers.get('idempotency-key'))).toEqual(['mine', 'mine', 'mine']);
});

test('a create waits for the one that still runs with its key', async () => {
  const { client, waits } = connect([refuse('idempotency_key_in_use')]);
  expect(await client.createPet.mutate({ name: 'Second', categoryId: 1 })).toMatchObject({ name: 'Second' });
  expect(waits).toEqual([250]);
});

test('of a batch only the calls that failed are repeated, and the others have their results meanwhile', async () => {
  const spoilSecond: Fault = async (send, init) => {
    const results = (await (await send()).json()) as unknown[];
    const refusal = await refuse('service_unavailable')(send, init);
    const headers = { 'retry-after': '1' };
    return Response.json([results[0], await refusal.json(), results[2]], { status: 207, headers });
  };
  const waking = defer();
  const waits: number[] = [];
  const sleep = (milliseconds: number) => {
    waits.push(milliseconds);
    return waking.promise;
  };
  const { client, sent } = connect([spoilSecond], { clock: { sleep } });
  const calls = [petId, petId, 0].map((id) => client.getPet.query({ petId: id }));
  const missing = await failureOf(calls[2] as Promise<unknown>);
  expect(missing).toMatchObject({ code: 'not_found', retryAfterSeconds: undefined });
  expect(await calls[0]).toMatchObject({ id: petId });
  expect(waits).toEqual([1_000]);
  waking.resolve();
  expect(await calls[1]).toMatchObject({ id: petId });
  expect(sent.map(({ url }) => new URL(url).pathname)).toEqual([
    '/trpc/getPet,getPet,getPet',
    '/trpc/getPet',
  ]);
});

test('a wait that would outlast the total time is not begun: the caller learns at once when to come back', async () => {
  const banned = connect([refuse('api_key_banned', '300')]);
  const failure = await failureOf(banned.client.listPets.query());
  expect(failure).toMatchObject({ code: 'api_key_banned', status: 429, retryAfterSeconds: 300 });
  expect([banned.sent.length, banned.waits]).toEqual([1, []]);
  const slow = connect(Array(9).fill(refuse('service_unavailable', '12')), { retry: { attempts: 9 } });
  await failureOf(slow.client.listPets.query());
  expect(slow.waits).toEqual([12_000, 12_000]);
});

test('a call that gets no answer ends with the total time', async () => {
  const { client } = connect([hang], { retry: { totalSeconds: 0.05 } });
  const failure = await failureOf(client.listPets.query());
  expect(failure.cause).toMatchObject({ name: 'TimeoutError' });
  expect(isApiError(failure)).toBe(false);
});

test('bounds that are given as undefined are the default ones', async () => {
  const retry = { attempts: undefined, totalSeconds: undefined } as object;
  const { client, sent } = connect(Array(9).fill(reset), { retry });
  expect((await failureOf(client.listPets.query())).cause).toMatchObject({ name: 'NetworkError' });
  expect(sent).toHaveLength(4);
});

test('a client that is told to send once repeats nothing', async () => {
  const { client, sent } = connect([reset], { retry: { attempts: 1 } });
  await failureOf(client.listPets.query());
  expect(sent).toHaveLength(1);
});

test('an abort ends a wait at once', async () => {
  const timers = vi.spyOn(globalThis, 'setTimeout');
  const retry = { totalSeconds: 7_200 };
  const { fetch, sent } = interpose(refuse('rate_limit_exceeded', '3600'));
  const client = createClient({ baseUrl: service.url, apiKey: service.key, fetch, retry });
  const controller = new AbortController();
  const failure = failureOf(client.listPets.query(undefined, { signal: controller.signal }));
  await vi.waitFor(() => expect(timers).toHaveBeenCalledWith(expect.any(Function), 3_600_000));
  timers.mockRestore();
  controller.abort();
  expect((await failure).cause).toMatchObject({ name: 'AbortError' });
  expect(sent).toHaveLength(1);
});

test('an abort ends one call of a batch at once, and the others go on', async () => {
  const release = defer();
  const { client, sent } = connect([(send) => release.promise.then(send)]);
  const controller = new AbortController();
  const aborted = failureOf(client.listPets.query(undefined, { signal: controller.signal }));
  const other = client.getPet.query({ petId });
  await vi.waitFor(() => expect(sent).toHaveLength(1));
  controller.abort();
  expect((await aborted).cause).toMatchObject({ name: 'AbortError' });
  release.resolve();
  expect(await other).toMatchObject({ id: petId });
});

test('a call whose signal is aborted already is not sent', async () => {
  const { client, sent } = connect([]);
  await failureOf(client.listPets.query(undefined, { signal: AbortSignal.abort() }));
  expect(sent).toEqual([]);
});
