import { createTRPCUntypedClient, httpBatchStreamLink } from '@trpc/client';
import { describe, expect, test } from 'vitest';
import { create, list, newItem, read } from '#operations-under-test';
import { exchange } from '../support/raw-http.js';
import { startTcpProxy } from '../support/tcp-proxy.js';
import { createTestDatabase, startService, useService } from '../support/test-service.js';

const { service } = useService();

interface Client {
  query(path: string, input?: unknown): Promise<unknown>;
  mutation(path: string, input?: unknown): Promise<unknown>;
}

/** What a call rejects with */
interface Failure {
  readonly message: string;
  readonly shape?: { readonly data: { readonly error: { readonly code: string; readonly message: string } } };
  readonly meta?: { readonly response: Response };
}

interface Target {
  readonly url?: string;
  readonly key?: string | undefined;
}

/** Clients ask for a stream with a header of tRPC's own, or with Accept. */
function connect(
  streamHeader: 'trpc-accept' | 'accept',
  { url = service.url, key = service.key }: Target = {},
): Client {
  const headers = { authorization: `Bearer ${key}` };
  return createTRPCUntypedClient({
    links: [httpBatchStreamLink({ url: `${url}/trpc`, headers, streamHeader })],
  });
}

/** The code of the error of each call, or undefined for those that succeed. */
async function codesOf(calls: readonly Promise<unknown>[]): Promise<(string | undefined)[]> {
  const settled = await Promise.allSettled(calls);
  return settled.map((result) => {
    if (result.status === 'fulfilled') return undefined;
    const { message, shape } = result.reason as Failure;
    expect(shape?.data.error.message).toBe(message);
    return shape?.data.error.code;
  });
}

const repeat = <T>(count: number, value: () => T): T[] => Array.from({ length: count }, value);

describe.each(['trpc-accept', 'accept'] as const)(
  'a client that asks for streams with %s learns',
  (streamHeader) => {
    const createClient = (target?: Target) => connect(streamHeader, target);

    test('the results and errors of its calls', async () => {
      const client = createClient();
      const calls = [client.query(list.name), client.query(list.name, { limit: 0 }), client.query('nope')];
      expect(await codesOf(calls)).toEqual([undefined, 'invalid_request', 'not_found']);
    });

    test('what its creates have stored, and what is wrong with their input', async () => {
      const client = createClient();
      const [stored, refused] = await Promise.allSettled([
        client.mutation(create.name, newItem('Streamed')),
        client.mutation(create.name, {}),
      ]);
      expect(stored).toMatchObject({ status: 'fulfilled', value: newItem('Streamed') });
      expect(refused).toMatchObject({ reason: { data: { error: { code: 'invalid_request' } } } });
    });

    test('that its key is invalid or missing', async () => {
      for (const [key, code] of [
        ['nonsense', 'invalid_api_key'],
        ['', 'missing_api_key'],
      ] as const) {
        const client = createClient({ key });
        for (const count of [1, 3]) {
          expect(await codesOf(repeat(count, () => client.query(list.name)))).toEqual(
            repeat(count, () => code),
          );
        }
        expect(await codesOf([client.mutation(create.name, {})])).toEqual([code]);
      }
    });

    test('that it is over its limit, and when to try again', async () => {
      const { key } = await service.keys.create({
        name: 'limited',
        plan: 'enterprise',
        perMinute: 2,
        perDay: 100,
        expiresAt: null,
      });
      const client = createClient({ key });
      const query = () => client.query(list.name);
      expect(await codesOf(repeat(3, query))).toEqual(repeat(3, () => 'rate_limit_exceeded'));
      const failure = (await query()
        .then(query)
        .then(query)
        .catch((error) => error)) as Failure;
      expect(failure.shape?.data.error.code).toMatch(/rate_limit_exceeded|api_key_banned/);
      const headers = failure.meta?.response.headers;
      expect(Number(headers?.get('retry-after'))).toBeGreaterThan(0);
      expect(headers?.get('x-ratelimit-limit')).toBe('2');
    });

    test('that no procedure has such a name, or that it is of another type', async () => {
      const client = createClient();
      expect(await codesOf([client.query('nope')])).toEqual(['not_found']);
      expect(await codesOf([client.query('nope'), client.query('neither')])).toEqual([
        'not_found',
        'not_found',
      ]);
      expect(await codesOf([client.mutation(list.name)])).toEqual(['method_not_allowed']);
      expect(await codesOf([client.query(create.name)])).toEqual(['method_not_allowed']);
      const mixed = [client.query(list.name), client.query(create.name)];
      expect(await codesOf(mixed)).toEqual(['invalid_request', 'invalid_request']);
    });

    test('that it is too large', async () => {
      const client = createClient();
      for (const count of [21, 100]) {
        const calls = repeat(count, () => client.query(list.name));
        expect(await codesOf(calls)).toEqual(repeat(count, () => 'invalid_request'));
      }
      const calls = [client.mutation(create.name, 'x'.repeat(70_000)), client.mutation(create.name, {})];
      expect(await codesOf(calls)).toEqual(['payload_too_large', 'payload_too_large']);
    });

    test('that the database is away', async () => {
      const databaseUrl = new URL(await createTestDatabase());
      const proxy = await startTcpProxy({ host: databaseUrl.hostname, port: Number(databaseUrl.port) });
      databaseUrl.port = String(proxy.port);
      const other = await startService({ databaseUrl: databaseUrl.href });
      await proxy.cut();
      const client = createClient(other);
      expect(await codesOf([client.query(list.name)])).toEqual(['service_unavailable']);
      await other.close();
      await proxy.close();
    });
  },
);

/** Requests a batch as a stream. */
function fetchStream(path: string, init: RequestInit = {}) {
  const headers = { 'trpc-accept': 'application/jsonl', authorization: 'Bearer nonsense' };
  return fetch(service.url + path, { ...init, headers });
}

test('a response says which headers decide whether it is streamed, in either form', async () => {
  for (const form of [{}, { 'trpc-accept': 'application/jsonl' }]) {
    const headers = { authorization: `Bearer ${service.key}`, ...form };
    const response = await fetch(`${service.url + list.trpc}?batch=1`, { headers });
    expect([response.status, response.headers.get('vary')]).toEqual([
      200,
      expect.stringContaining('trpc-accept, accept'),
    ]);
    await response.text();
  }
});

test('an error of a whole streamed batch is ordinary JSON with its status, and the headers of every response', async () => {
  const response = await fetchStream(`${list.trpc},${read.name}?batch=1`);
  expect([response.status, response.headers.get('content-type')]).toEqual([401, 'application/json']);
  expect(response.headers.get('vary')).toContain('trpc-accept');
  expect(response.headers.get('www-authenticate')).toBe('Bearer');
  expect(response.headers.has('x-ratelimit-remaining')).toBe(true);
  expect(await response.json()).toMatchObject({ error: { data: { error: { code: 'invalid_api_key' } } } });
});

test.each([
  ['1.1', 'chunked'],
  ['1.0', null],
] as const)('to a caller with HTTP/%s, the transfer coding of a stream is %s', async (version, coding) => {
  const fields = ['Host: x', `Authorization: Bearer ${service.key}`, 'trpc-accept: application/jsonl'];
  const target = `${list.trpc},nope?batch=1`;
  const lines = [`GET ${target} HTTP/${version}`, ...fields, 'Connection: close', '', ''];
  const received = await exchange(service.port, lines.join('\r\n'));
  const [head = '', body = ''] = received.split('\r\n\r\n', 2);
  const [statusLine, ...headers] = head.split('\r\n');
  expect(statusLine).toBe('HTTP/1.1 200 OK');
  const codings = headers.filter((field) => /^transfer-encoding:/i.test(field));
  expect(codings.map((field) => field.split(': ')[1])).toEqual(coding === null ? [] : [coding]);
  if (coding !== null) return;
  const results = body
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(JSON.stringify(results)).toContain('"not_found"');
});

test('another trpc-accept, even with the same media type in it, asks for no stream', async () => {
  const headers = { 'trpc-accept': 'application/jsonl, text/plain', authorization: `Bearer ${service.key}` };
  const response = await fetch(`${service.url}${list.trpc},nope?batch=1`, { headers });
  expect(response.status).toBe(207);
  expect(await response.json()).toMatchObject([{ result: {} }, { error: {} }]);
});

test('the response to an enormous batch is small', async () => {
  const response = await fetchStream(`/trpc/${','.repeat(10_000)}?batch=1`);
  expect(response.status).toBe(404);
  expect((await response.text()).length).toBeLessThan(1_000);
});
