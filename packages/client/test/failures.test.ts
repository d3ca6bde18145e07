import { once } from 'node:events';
import { createClient } from '@animal-store/client';
import { afterEach, expect, test, vi } from 'vitest';
import { failConnection, respondAsProxy } from '../../../test/support/intercepted-fetch.js';
import { create, list, newItem } from '../../../test/support/operations-under-test.js';
import { useService } from '../../platform/test/support/test-service.js';
import { connectWith, failureOf } from './retrying-client.js';

const { service } = useService();
afterEach(() => vi.unstubAllGlobals());

/** A signal as jsdom's are: Node.js refuses it. */
class ForeignController {
  readonly signal = new EventTarget();
  abort(): void {}
}

test('the origin of the page, where there is no page, fails at once, and the message says what to give', async () => {
  const sent = vi.fn(fetch);
  vi.stubGlobal('fetch', sent);
  const client = createClient({ baseUrl: '', apiKey: service.key });
  const failure = await failureOf(client[list.name].query());
  expect(failure.message).toBe(
    "baseUrl '' is the origin of the page, and there is no page here: give the service's address",
  );
  expect(failure.cause).toBeInstanceOf(TypeError);
  expect(sent).not.toHaveBeenCalled();
});

test('a port that fetch refuses fails at once, and the message says so', async () => {
  const sent = vi.fn(fetch);
  vi.stubGlobal('fetch', sent);
  const client = createClient({ baseUrl: 'http://127.0.0.1:6000', apiKey: service.key });
  const failure = await failureOf(client[list.name].query());
  expect(failure.message).toBe('fetch refused the request: bad port');
  expect(failure.cause).toBeInstanceOf(TypeError);
  expect(sent).toHaveBeenCalledTimes(1);
});

test("a signal of another platform's fails at once, with the words of fetch", async () => {
  const sent = vi.fn(fetch);
  vi.stubGlobal('fetch', sent);
  const client = createClient({ baseUrl: service.url, apiKey: service.key });
  vi.stubGlobal('AbortController', ForeignController);
  const failure = await failureOf(client[list.name].query());
  expect(failure.message).toMatch(/signal/i);
  expect(failure.message).not.toContain('could not be reached');
  expect(sent).toHaveBeenCalledTimes(1);
});

test.each([
  new TypeError("Cannot read properties of undefined (reading 'token')"),
  new TypeError('RequestInit: Expected signal to be an instance of AbortSignal'),
  new ReferenceError('session is not defined'),
])("a mistake in the caller's fetch fails at once, as it is: %s", async (mistake) => {
  const throwMistake = () => {
    throw mistake;
  };
  const { client, sent } = connectWith(service, [throwMistake]);
  const failure = await failureOf(client[list.name].query());
  expect([failure.message, failure.cause, sent.length]).toEqual([mistake.message, mistake, 1]);
});

test.each([
  'fetch failed',
  'Failed to fetch',
  'Load failed',
  'NetworkError when attempting to fetch resource.',
  'Network request failed',
])('a TypeError that says "%s" is a network error, and is retried', async (message) => {
  const fail = () => {
    throw new TypeError(message);
  };
  const { client, sent } = connectWith(service, [fail]);
  await client[list.name].query();
  expect(sent).toHaveLength(2);
});

test('a request that the global fetch could send, and that failed, is retried', async () => {
  let failures = 0;
  const { fetch: real } = globalThis;
  vi.stubGlobal('fetch', async (...args: Parameters<typeof fetch>) => {
    if (failures++ === 0) return failConnection(() => real(...args), {});
    return real(...args);
  });
  const client = createClient({
    baseUrl: service.url,
    apiKey: service.key,
    clock: { sleep: async () => {} },
  });
  await client[list.name].query();
  expect(failures).toBe(2);
});

test("what a proxy sends in the service's place has a name of its own among the causes, and keeps its retries", async () => {
  for (const [status, requests] of [
    [200, 1],
    [403, 1],
    [502, 4],
  ] as const) {
    const { client, sent } = connectWith(service, Array(4).fill(respondAsProxy(status)));
    const failure = await failureOf(client[list.name].query());
    expect(failure.cause).toMatchObject({ name: 'UnexpectedResponseError' });
    expect(failure.message).toContain(`(${status}, text/html)`);
    expect([status, sent.length]).toEqual([status, requests]);
  }
});

test('JSON of another server has the same name', async () => {
  const { client } = connectWith(service, [
    () => Response.json({ message: 'no Route matched' }, { status: 404 }),
  ]);
  const failure = await failureOf(client[list.name].query());
  expect(failure.cause).toMatchObject({ name: 'UnexpectedResponseError' });
});

/** What other tRPC servers say: `data` as tRPC itself makes it, or as a formatter of theirs does. */
const FOREIGN_DATA = [
  undefined,
  null,
  'text',
  { code: 'NOT_FOUND', httpStatus: 404, path: 'x' },
  { error: null },
  { error: 'text' },
  { error: {} },
  { error: { code: 'not_found' } },
  { error: { status: 404 } },
  { error: { code: 404, status: 'not_found' } },
];

test.each(FOREIGN_DATA)('an error of another tRPC server has the same name: %j', async (data) => {
  const error = { message: 'No procedure found', code: -32_004, data };
  const respond = (body: unknown) => () => Response.json(body, { status: 404 });
  const { client, sent } = connectWith(
    service,
    [[{ error }], [{ error }, { error }], { error }].map(respond),
  );
  const failures = [
    await failureOf(client[list.name].query()),
    ...(await Promise.all([1, 2].map((limit) => failureOf(client[list.name].query({ limit }))))),
    await failureOf(client[create.name].mutate(newItem('Rex'))),
  ];
  for (const failure of failures) {
    expect(failure.cause).toMatchObject({ name: 'UnexpectedResponseError' });
    expect(failure.message).toContain('(404, application/json)');
  }
  expect(sent).toHaveLength(3);
});

test.each([
  [200, [], 1],
  [200, [{ result: { data: [] } }], 1],
  [500, [], 4],
])('an array with fewer results than calls, as a %d, is a response of another server: %j', async (...row) => {
  const [status, body, requests] = row;
  const { client, sent } = connectWith(
    service,
    Array(4).fill(() => Response.json(body, { status })),
  );
  const calls = [1, 2].map((limit) => failureOf(client[list.name].query({ limit })));
  for (const failure of await Promise.all(calls)) {
    expect(failure.cause).toMatchObject({ name: 'UnexpectedResponseError' });
    expect(failure.message).toContain(`(${status}, application/json)`);
  }
  expect(sent).toHaveLength(requests);
});

test('many calls with one signal print no warning, and all end when it is aborted', async () => {
  const warnings: unknown[] = [];
  const collect = (warning: unknown) => warnings.push(warning);
  process.on('warning', collect);
  const controller = new AbortController();
  const { client } = connectWith(service, []);
  const { signal } = controller;
  await Promise.all(Array.from({ length: 30 }, () => client[list.name].query({ limit: 1 }, { signal })));
  for (let call = 0; call < 30; call += 1) await client[list.name].query({ limit: 1 }, { signal });
  const pending = Array.from({ length: 30 }, () => failureOf(client[list.name].query({}, { signal })));
  controller.abort();
  for (const { cause } of await Promise.all(pending)) expect(cause).toMatchObject({ name: 'AbortError' });
  // A warning is emitted in a later tick.
  process.emitWarning('the last one');
  await once(process, 'warning');
  process.off('warning', collect);
  expect(warnings.map((warning) => String(warning))).toEqual(['Warning: the last one']);
});
